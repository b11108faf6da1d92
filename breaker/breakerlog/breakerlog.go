// Package breakerlog logs what breakers do with log/slog. It is apart from package breaker so that
// a program that does not log transitions does not link log/slog.
package breakerlog

import (
	"log/slog"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/internal/friend"
)

var inBreaker = breaker.Inside(friend.Key{})

// Changes returns a function for [breaker.Config.OnChange] that logs each change: as a warning if
// the breaker opens or would open, and as information otherwise. It logs with
// [breaker.Change.Context], so that a record has the trace of the call that caused the change.
// Several breakers may share the function. Changes panics if logger is nil.
//
// The attributes are:
//
//   - event.name: weir.breaker.transition.
//   - weir.breaker.name, and weir.group.key for a member of a Group.
//   - weir.breaker.state, the state that began, and weir.breaker.previous_state.
//   - weir.breaker.reason: Change.Reason.
//   - weir.breaker.origin: calls, shared_counts, clock or hand.
//   - weir.breaker.changed_at: Change.At.
//   - weir.breaker.seq, which numbers the changes of the breaker from 1 on.
//   - weir.breaker.calls and weir.breaker.failures, if calls caused the change.
//   - weir.breaker.margin and weir.breaker.last_failures, if the change has them: a text, and a
//     list of texts, the oldest first.
func Changes(logger *slog.Logger) func(breaker.Change) {
	if logger == nil {
		panic("breakerlog: Changes: the logger is nil")
	}
	return func(c breaker.Change) {
		level, message := slog.LevelInfo, "breaker "+string(c.To)
		switch {
		case c.From == c.To: // in the state Shadow, or prevented by MaxOpen
			level, message = slog.LevelWarn, "breaker would open"
		case c.To == breaker.Open || c.To == breaker.ForcedOpen:
			level = slog.LevelWarn
		}
		logger.LogAttrs(c.Context(), level, message, attrs(c)...)
	}
}

// attrs returns the attributes of a change. The first ones say which breaker it is.
func attrs(c breaker.Change) []slog.Attr {
	attrs := []slog.Attr{slog.String("event.name", "weir.breaker.transition"), slog.String("weir.breaker.name", c.Name)}
	if c.Key != "" {
		attrs = append(attrs, slog.String("weir.group.key", c.Key))
	}
	origin, seq := inBreaker.OriginOf(c)
	attrs = append(attrs,
		slog.String("weir.breaker.state", string(c.To)), slog.String("weir.breaker.previous_state", string(c.From)),
		slog.String("weir.breaker.reason", c.Reason), slog.String("weir.breaker.origin", origin),
		slog.Time("weir.breaker.changed_at", c.At), slog.Uint64("weir.breaker.seq", seq))
	if n := c.Counts.Calls(); n > 0 {
		attrs = append(attrs, slog.Int64("weir.breaker.calls", n), slog.Int64("weir.breaker.failures", c.Counts.Failures))
	}
	if c.Margin != "" {
		attrs = append(attrs, slog.String("weir.breaker.margin", c.Margin))
	}
	if len(c.LastFailures) > 0 {
		texts := make([]string, len(c.LastFailures))
		for i, f := range c.LastFailures {
			texts[i] = f.String()
		}
		attrs = append(attrs, slog.Any("weir.breaker.last_failures", texts))
	}
	return attrs
}
