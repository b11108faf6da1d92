package fleet

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-go/weir/fleet/internal/detach"
	"github.com/weir-go/weir/fleet/internal/pipeline"
)

// askFunc requests numbers from a server, and returns by the time due. led reports that the caller
// led the batch of commands in which this one was sent.
type askFunc func(n *node, due time.Time) (reply []int64, led bool, err error)

// eval runs a script once. Everything that limiters ask Redis goes through eval, decide or command.
// Nothing is sent again if it may have been executed.
func (l *Link) eval(ctx context.Context, s *script, keys []string, args []any) ([]int64, error) {
	return l.request(ctx, keys[0], s.askBy(ctx, keys, args))
}

// flush is like eval, but sends the scripts that are flushed at the same time together.
func (l *Link) flush(ctx context.Context, s *script, keys []string, args []any) ([]int64, error) {
	ask := s.askBy(ctx, keys, args)
	return l.request(ctx, keys[0], func(n *node, due time.Time) ([]int64, bool, error) {
		return ask(&node{writer: n.flushes}, due)
	})
}

// askBy returns a function that runs the script once.
func (s *script) askBy(ctx context.Context, keys []string, args []any) askFunc {
	return func(n *node, due time.Time) ([]int64, bool, error) {
		reply, led, err := n.writer.Do(ctx, due, scriptCommand("evalsha", s.sha, keys, args)...)
		if redis.HasErrorPrefix(err, "NOSCRIPT") { // it was not executed
			return n.writer.Do(ctx, due, scriptCommand("eval", s.text, keys, args)...)
		}
		return reply, led, err
	}
}

// decide is like eval, but for a script that decides for many callers at once.
func (l *Link) decide(ctx context.Context, d *pipeline.Decision, key string, args ...any) ([]int64, error) {
	return l.request(ctx, key, func(n *node, due time.Time) ([]int64, bool, error) {
		return n.writer.Decide(ctx, due, d, key, args...)
	})
}

// command is like eval, but runs a command on a key. If the server does not know the command, its
// error is returned as it is.
func (l *Link) command(ctx context.Context, key string, args ...any) ([]int64, error) {
	var unknown error
	reply, err := l.request(ctx, key, func(n *node, due time.Time) ([]int64, bool, error) {
		reply, led, err := n.writer.Do(ctx, due, args...)
		if redis.HasErrorPrefix(err, "unknown command") {
			unknown, err = err, nil
		}
		return reply, led, err
	})
	if err == nil && unknown != nil { // otherwise the caller may have left
		return nil, unknown
	}
	return reply, err
}

// request requests numbers from the server that has the key. A caller whose ctx ends leaves. What
// it is sending may contain commands of other callers, and goes on until it is due.
func (l *Link) request(ctx context.Context, key string, ask askFunc) ([]int64, error) {
	return detach.Do(ctx, func() (reply []int64, err error) {
		err = l.ask(ctx, key, func(n *node, due time.Time) (led bool, err error) {
			reply, led, err = ask(n, due)
			if err == nil && len(reply) == 1 && reply[0] == foreignValue {
				err = &StoreError{link: l.name, Fault: faultForeign}
			}
			return led, err
		})
		return reply, err
	})
}

// foreignValue is the only number in the reply of a script that finds a foreign value.
const foreignValue = -1

func scriptCommand(verb, script string, keys []string, args []any) []any {
	command := make([]any, 0, 3+len(keys)+len(args))
	command = append(command, verb, script, len(keys))
	for _, key := range keys {
		command = append(command, key)
	}
	return append(command, args...)
}
