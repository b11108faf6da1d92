package pipeline

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// Decision is a script that decides about each of its keys separately. It takes the same number of
// arguments per key, those of the first key first.
type Decision struct {
	Text, SHA string
	Answers   int // the numbers in the reply per key
}

// command is one Redis command for one or more callers. No client retries it, because it may have
// been executed.
type command struct {
	*redis.IntSliceCmd
	calls []*call
	addr  string // of the server it was last sent to, if the client's hooks tell
}

// SentTo is called by a hook before the command is sent to a server.
func (c *command) SentTo(addr string) { c.addr = addr }

// NoRetry returns true.
func (*command) NoRetry() bool { return true }

// commands returns the commands to send for a batch.
func (w *Writer) commands(ctx context.Context, batch []*call) []*command {
	if len(batch) == 1 {
		return []*command{newCommand(ctx, batch)}
	}
	var groups [][]*call
	merged := map[*Decision]int{} // index in groups
	for _, c := range batch {
		i, open := merged[c.decision]
		if !open || c.sendText {
			i = len(groups)
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], c)
		if c.decision != nil && !c.sendText && w.merges.Load() {
			merged[c.decision] = i
		}
	}
	commands := make([]*command, len(groups))
	for i, calls := range groups {
		commands[i] = newCommand(ctx, calls)
	}
	return commands
}

func newCommand(ctx context.Context, calls []*call) *command {
	return &command{calls: calls, IntSliceCmd: redis.NewIntSliceCmd(ctx, arguments(calls)...)}
}

// arguments returns the arguments of the command for some calls.
func arguments(calls []*call) []any {
	switch first := calls[0]; {
	case first.decision == nil:
		return first.args
	case first.sendText:
		return first.decision.arguments("eval", first.decision.Text, calls)
	default:
		return first.decision.arguments("evalsha", first.decision.SHA, calls)
	}
}

func (d *Decision) arguments(verb, script string, calls []*call) []any {
	args := make([]any, 0, 3+len(calls)*(1+len(calls[0].args)))
	args = append(args, verb, script, len(calls))
	for _, c := range calls {
		args = append(args, c.key)
	}
	for _, c := range calls {
		args = append(args, c.args...)
	}
	return args
}

// distributeReply gives each caller its part of the reply.
func (c *command) distributeReply() {
	answer, err := c.Result()
	for i, m := range c.calls {
		m.answer, m.err, m.shared, m.addr = answer, err, len(c.calls) > 1, c.addr
		if d := m.decision; d != nil && err == nil {
			if len(answer) != d.Answers*len(c.calls) {
				m.answer, m.err = nil, fmt.Errorf("pipeline: a script returned %d numbers for %d keys", len(answer), len(c.calls))
				continue
			}
			m.answer = answer[i*d.Answers : (i+1)*d.Answers]
		}
	}
}
