package fleet

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// meet asks a server, once, whether it is new enough, is of a Cluster only where the client can follow, lets us do what scripts do with
// the key, and has redis-cell. Of several servers the first that answers stands for all.
func (l *Link) checkServer(ctx context.Context, n *node, key string, due time.Time) error {
	if l.serverChecked.Load() {
		return nil
	}
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), due)
	defer cancel()
	info, err := n.do(ctx, "info", "server").Text()
	if err != nil && !redis.HasErrorPrefix(err, "NOPERM") { // who may not ask has to know
		return err
	}
	if major := majorVersion(info); major > 0 && major < 6 {
		return &StoreError{link: l.name, Fault: faultTooOld}
	}
	if _, plain := l.client.(*redis.Client); plain && isClusterNode(info) {
		return &StoreError{link: l.name, Fault: faultMoved, final: true}
	}
	const attempt = "redis.call('TIME') redis.call('GET', KEYS[1]) return 1" // what else may be wrong shows when it decides
	if err := n.do(ctx, "eval", attempt, 1, key).Err(); err != nil && faultOf(err) == faultDenied {
		return err
	}
	cell, err := n.hasCommand(ctx, "cl.throttle")
	if err != nil {
		return err
	}
	l.hasCell.Store(cell)
	l.serverChecked.Store(true)
	return nil
}

// hasCommand reports whether the server says that it knows a command. A server that refuses to say
// counts as one that does not know it. The error says that the server gave no answer.
func (n *node) hasCommand(ctx context.Context, name string) (bool, error) {
	known, err := n.do(ctx, "command", "info", name).Slice()
	if _, ok := errors.AsType[redis.Error](err); ok {
		if fault := faultOf(err); fault == faultDenied || fault == faultOther {
			return false, nil
		}
	}
	return err == nil && len(known) == 1 && known[0] != nil, err
}

// about asks the server about itself.
func (n *node) do(ctx context.Context, args ...any) *redis.Cmd {
	command := unretried{redis.NewCmd(ctx, args...)}
	_ = n.client.Process(ctx, command) // the command has the error
	return command.Cmd
}

// question is a command that the client does not send again: what the first answer says is what is to be known.
type unretried struct{ *redis.Cmd }

// NoRetry is true.
func (unretried) NoRetry() bool { return true }

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

// clustered reports whether INFO says that the server is in cluster mode. Valkey has a word of its own for it.
func isClusterNode(info string) bool {
	return strings.Contains(info, "redis_mode:cluster") || strings.Contains(info, "server_mode:cluster")
}
