package pipeline

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// Decision is a script that decides about each of its keys by itself. It takes arguments for each key, those of the first key
// first, and answers with so many numbers for each.
type Decision struct {
	Text, SHA string
	Answers   int
}

// command is a command for some callers that no client sends again: whether it was executed is not known.
type command struct {
	*redis.IntSliceCmd
	calls []*call
	addr  string // of the server that was asked last, where the client's hooks tell
}

// SentTo is called by a hook of a client for one server, with its address, before the command is sent there.
func (c *command) SentTo(addr string) { c.addr = addr }

// NoRetry is asked by the client before each attempt but the first.
func (*command) NoRetry() bool { return true }

// commands are what a batch is sent as.
func (w *Writer) commands(ctx context.Context, batch []*call) []*command {
	if len(batch) == 1 {
		return []*command{newCommand(ctx, batch)}
	}
	var groups [][]*call
	joint := map[*Decision]int{} // which of the groups
	for _, c := range batch {
		i, open := joint[c.decision]
		if !open || c.sendText {
			i = len(groups)
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], c)
		if c.decision != nil && !c.sendText && w.merges.Load() {
			joint[c.decision] = i
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

// arguments are what the command for some callers is made of.
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

// about is the script about the keys of some callers.
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

// deal gives each of the callers its answer.
func (c *command) distribute() {
	answer, err := c.Result()
	for i, m := range c.calls {
		m.answer, m.err, m.shared, m.addr = answer, err, len(c.calls) > 1, c.addr
		if d := m.decision; d != nil && err == nil {
			if len(answer) != d.Answers*len(c.calls) {
				m.answer, m.err = nil, fmt.Errorf("pipeline: a script gave %d numbers for %d keys", len(answer), len(c.calls))
				continue
			}
			m.answer = answer[i*d.Answers : (i+1)*d.Answers]
		}
	}
}
