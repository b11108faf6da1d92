package fleet

import (
	"context"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// meet asks the server, once, whether it is new enough, lets us do what scripts do, and has redis-cell.
func (l *Link) meet(ctx context.Context) error {
	if l.met.Load() {
		return nil
	}
	info, err := l.about(ctx, "info", "server").Text()
	if err != nil && !redis.HasErrorPrefix(err, "NOPERM") { // who may not ask has to know
		return err
	}
	if major := majorVersion(info); major > 0 && major < 6 {
		return &StoreError{Name: l.name, Fault: TooOld}
	}
	const attempt = "redis.call('TIME') redis.call('GET', KEYS[1]) return 1" // what else may be wrong shows when it decides
	if err := l.about(ctx, "eval", attempt, 1, l.prefix+"{}").Err(); err != nil && faultOf(err) == Denied {
		return err
	}
	l.cell.Store(l.hasCommand(ctx, "cl.throttle"))
	l.met.Store(true)
	return nil
}

// hasCommand reports whether the server says that it knows a command.
func (l *Link) hasCommand(ctx context.Context, name string) bool {
	known, err := l.about(ctx, "command", "info", name).Slice()
	return err == nil && len(known) == 1 && known[0] != nil
}

// about asks the server about itself.
func (l *Link) about(ctx context.Context, args ...any) *redis.Cmd {
	command := question{redis.NewCmd(ctx, args...)}
	_ = l.client.Process(ctx, command) // the command has the error
	return command.Cmd
}

// question is a command that the client does not send again: what the first answer says is what is to be known.
type question struct{ *redis.Cmd }

// NoRetry is true.
func (question) NoRetry() bool { return true }

// majorVersion reads the version out of INFO, 0 where there is none. Valkey says there with which Redis it is compatible.
func majorVersion(info string) int {
	_, version, _ := strings.Cut(info, "redis_version:")
	major, _, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(major)
	if err != nil {
		return 0
	}
	return n
}
