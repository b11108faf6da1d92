package fleet

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// checkServer asks a server once about itself: whether it is new enough, whether the client fits
// its cluster mode, whether the user may do what scripts do with the key, and whether it has
// redis-cell. If there are several servers, the first that answers stands for all.
func (l *Link) checkServer(ctx context.Context, n *node, key string, due time.Time) error {
	if l.serverChecked.Load() {
		return nil
	}
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), due)
	defer cancel()
	info, err := n.do(ctx, "info", "server").Text()
	if err != nil && !redis.HasErrorPrefix(err, "NOPERM") {
		// without the right to ask, the version is not checked
		return err
	}
	if major := majorVersion(info); major > 0 && major < 6 {
		return &StoreError{link: l.name, Fault: faultTooOld}
	}
	if _, plain := l.client.(*redis.Client); plain && isClusterNode(info) {
		return &StoreError{link: l.name, Fault: faultMoved, final: true}
	}
	// decisions report other errors
	const attempt = "redis.call('TIME') redis.call('GET', KEYS[1]) return 1"
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

// hasCommand reports whether the server says that it knows a command. It returns false if the
// server refuses to say, and an error if the server does not answer.
func (n *node) hasCommand(ctx context.Context, name string) (bool, error) {
	known, err := n.do(ctx, "command", "info", name).Slice()
	if _, ok := errors.AsType[redis.Error](err); ok {
		if fault := faultOf(err); fault == faultDenied || fault == faultOther {
			return false, nil
		}
	}
	return err == nil && len(known) == 1 && known[0] != nil, err
}

// do sends one command that is not retried.
func (n *node) do(ctx context.Context, args ...any) *redis.Cmd {
	command := unretried{redis.NewCmd(ctx, args...)}
	_ = n.client.Process(ctx, command) // the command has the error
	return command.Cmd
}

// unretried is a command that the client does not retry.
type unretried struct{ *redis.Cmd }

// NoRetry returns true.
func (unretried) NoRetry() bool { return true }

// majorVersion returns the major version in the reply to INFO, or 0 if there is none. Valkey
// reports the version of Redis it is compatible with.
func majorVersion(info string) int {
	_, version, _ := strings.Cut(info, "redis_version:")
	major, _, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(major)
	if err != nil {
		return 0
	}
	return n
}

// isClusterNode reports whether the reply to INFO says that the server is in cluster mode. Valkey
// names the field server_mode.
func isClusterNode(info string) bool {
	return strings.Contains(info, "redis_mode:cluster") || strings.Contains(info, "server_mode:cluster")
}
