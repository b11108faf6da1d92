package alert

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"
)

// Notifier passes alerts on. A monitor tells each of its notifiers that an alert fires and that it
// has resolved. Pending alerts are not passed on.
//
// Each notifier is called by one goroutine at a time and does not wait for another notifier. Notify
// returns nil once the alert is delivered. After an error the monitor tries again, with growing
// pauses, until an attempt succeeds. If the state of the alert changes meanwhile, the monitor tries
// the new state instead. A [DeliveryError] can ask for a pause, or say that the alert is refused or
// would fail again. So an alert may arrive twice, with the same ID, State and StartsAt, but its latest
// state does arrive.
//
// The name is for metrics and logs, and unique within a monitor. It holds no secret.
//
// A notifier may have two more methods:
//
//	NotifyAll(ctx context.Context, alerts []Alert) error
//	Repeat() time.Duration
//
// NotifyAll takes up to 64 alerts at once, which are delivered together or not at all. The monitor
// then calls NotifyAll and never Notify. If it fails, an alert that may be the reason is sent again
// by itself, so that it does not hold up the others. Repeat is how often the notifier is told again
// of an alert that fires, and for 15 minutes of one that has resolved; 0 means never.
type Notifier interface {
	Name() string
	Notify(ctx context.Context, a Alert) error
}

type batcher interface {
	NotifyAll(ctx context.Context, alerts []Alert) error
}

type repeater interface{ Repeat() time.Duration }

// Log returns a notifier that writes each alert to the logger, at level Warn if it fires and Info if
// it has resolved. Log panics if logger is nil.
func Log(logger *slog.Logger) Notifier {
	if logger == nil {
		panic("alert: Log: the logger is nil")
	}
	return Func("log", func(ctx context.Context, a Alert) error {
		level := slog.LevelWarn
		if a.State == Resolved {
			level = slog.LevelInfo
		}
		logger.LogAttrs(ctx, level, "alert "+string(a.State), a.attrs()...)
		return nil
	})
}

func (a Alert) attrs() []slog.Attr {
	attrs := []slog.Attr{
		slog.String("rule", a.Rule), slog.String("summary", a.Summary),
		slog.Float64("value", a.Value), slog.Time("starts_at", a.StartsAt),
	}
	if a.State == Resolved {
		attrs = append(attrs, slog.Time("ends_at", a.EndsAt))
	}
	if a.Key != "" {
		attrs = append(attrs, slog.String("key", a.Key))
	}
	if severity := a.Labels[labelSeverity]; severity != "" {
		attrs = append(attrs, slog.String("severity", severity))
	}
	if notes := a.notes(); len(notes) > 0 {
		attrs = append(attrs, slog.GroupAttrs("annotations", notes...))
	}
	return append(attrs, slog.String("id", a.ID))
}

// notes returns the annotations but for the summary, which is logged by itself.
func (a Alert) notes() (attrs []slog.Attr) {
	for _, name := range slices.Sorted(maps.Keys(a.Annotations)) {
		if name != "summary" {
			attrs = append(attrs, slog.String(name, a.Annotations[name]))
		}
	}
	return attrs
}

// Func returns a notifier with the name that calls notify. Func panics if notify is nil.
func Func(name string, notify func(ctx context.Context, a Alert) error) Notifier {
	if notify == nil {
		panic("alert: Func: the function is nil")
	}
	return &callback{name: name, notify: notify}
}

type callback struct {
	name   string
	notify func(ctx context.Context, a Alert) error
}

func (c *callback) Name() string                              { return c.name }
func (c *callback) Notify(ctx context.Context, a Alert) error { return c.notify(ctx, a) }
