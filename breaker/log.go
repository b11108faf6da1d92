package breaker

import (
	"context"
	"log/slog"
)

// eventName says what kind of event a record is, for logs that know of such.
const eventName = "weir.breaker.transition"

// LogChanges returns a function for Config.OnChange that writes each change to the
// logger: a warning where the breaker opens, or would, and information otherwise. One
// function serves any number of breakers. LogChanges panics if the logger is nil.
//
// The attributes that metrics have too go by the same keys: weir.breaker.name, and
// weir.breaker.state for the one entered, and weir.group.key for a member of a Group. The attribute event.name is
// weir.breaker.transition, whatever the message.
func LogChanges(logger *slog.Logger) func(Change) {
	if logger == nil {
		panic("breaker: LogChanges: the logger is nil")
	}
	return func(c Change) {
		level, message := slog.LevelInfo, "breaker "+string(c.To)
		switch {
		case c.From == c.To: // a breaker in shadow mode
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
	return attrs
}
