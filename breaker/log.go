package breaker

import (
	"context"
	"log/slog"
)

// eventName is the value of the attribute event.name, for logs that have event names.
const eventName = "weir.breaker.transition"

// LogChanges returns a function for Config.OnChange that logs each change: as a warning if the breaker
// opens or would open, and as information otherwise. Several breakers may share the function.
// LogChanges panics if logger is nil.
//
// The attributes are:
//
//   - event.name: weir.breaker.transition.
//   - weir.breaker.name, and weir.group.key for a member of a Group.
//   - from, and weir.breaker.state for the state that began.
//   - reason, and origin: calls, shared_counts, clock or hand.
//   - at, and seq, which numbers the changes of the breaker from 1 on.
//   - calls and failures, if calls caused the change.
//   - margin and last_failures, if the change has them: a text, and a list of texts, the oldest first.
func LogChanges(logger *slog.Logger) func(Change) {
	if logger == nil {
		panic("breaker: LogChanges: the logger is nil")
	}
	return func(c Change) {
		level, message := slog.LevelInfo, "breaker "+string(c.To)
		switch {
		case c.From == c.To: // in the state Shadow, or prevented by MaxOpen
			level, message = slog.LevelWarn, "breaker would open"
		case c.To == Open || c.To == ForcedOpen:
			level = slog.LevelWarn
		}
		logger.LogAttrs(context.Background(), level, message, c.attrs()...)
	}
}

func (c Change) attrs() []slog.Attr {
	attrs := []slog.Attr{
		slog.String("event.name", eventName),
		slog.String("weir.breaker.name", c.Name), slog.String("weir.breaker.state", string(c.To)),
		slog.String("from", string(c.From)), slog.String("reason", c.Reason), slog.String("origin", c.origin),
		slog.Time("at", c.At), slog.Uint64("seq", c.seq),
	}
	if c.Key != "" {
		attrs = append(attrs, slog.String("weir.group.key", c.Key))
	}
	if n := c.Counts.Calls(); n > 0 {
		attrs = append(attrs, slog.Int64("calls", n), slog.Int64("failures", c.Counts.Failures))
	}
	if c.Margin != "" {
		attrs = append(attrs, slog.String("margin", c.Margin))
	}
	if len(c.LastFailures) > 0 {
		texts := make([]string, len(c.LastFailures))
		for i, f := range c.LastFailures {
			texts[i] = f.String()
		}
		attrs = append(attrs, slog.Any("last_failures", texts))
	}
	return attrs
}
