package alert

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"
)

// Notifier sends alerts to a receiver. A monitor tells each of its notifiers when an alert fires
// and when it resolves, but not while it is pending.
//
// Notify returns nil once the alert is delivered. After an error the monitor tries again, with
// growing pauses, until an attempt succeeds. If the alert's state changes meanwhile, the monitor
// sends the new state instead. A [DeliveryError] can ask for a pause, or say that the alert is
// refused or would fail again. An alert may therefore arrive twice, with the same ID, State and
// StartsAt, but its latest state does arrive. Each notifier is called by one goroutine at a time
// and does not wait for other notifiers.
//
// Name returns the name for metrics and logs, which must be unique within a monitor and hold no
// secret.
//
// A notifier may have three more methods:
//
//	NotifyAll(ctx context.Context, alerts []Alert) error
//	Repeat() time.Duration
//	OwnSilences() bool
//
// NotifyAll takes up to 64 alerts, which are delivered together or not at all. The monitor then
// calls NotifyAll and never Notify. If a batch fails because of one alert, that alert is sent again
// by itself, so that it does not delay the others. Repeat is how often a firing alert is sent
// again. A resolved alert is also repeated, for 15 minutes. 0 means that no alert is repeated.
// OwnSilences reports whether the receiver silences alerts itself. If it does, the monitor's
// silences do not apply to it.
type Notifier interface {
	Name() string
	Notify(ctx context.Context, a Alert) error
}

type batchNotifier interface {
	NotifyAll(ctx context.Context, alerts []Alert) error
}

type repeatNotifier interface{ Repeat() time.Duration }

type silencingNotifier interface{ OwnSilences() bool }

// Func returns a notifier that calls notify. It panics if notify is nil.
func Func(name string, notify func(ctx context.Context, a Alert) error) Notifier {
	if notify == nil {
		panic("alert: Func: the function is nil")
	}
	return &funcNotifier{name: name, notify: notify}
}

type funcNotifier struct {
	name   string
	notify func(ctx context.Context, a Alert) error
}

func (n *funcNotifier) Name() string                              { return n.name }
func (n *funcNotifier) Notify(ctx context.Context, a Alert) error { return n.notify(ctx, a) }

// Log returns a notifier named "log" that writes each alert to the logger, at level Warn if it
// fires and Info if it resolved. It panics if logger is nil.
//
// The attributes are:
//
//   - weir.alert.rule, and weir.group.key for a member of a group.
//   - weir.alert.summary, weir.alert.value, weir.alert.severity and weir.alert.id.
//   - weir.alert.starts_at, and weir.alert.ends_at if it resolved.
//   - weir.alert.annotations: a group.
func Log(logger *slog.Logger) Notifier {
	if logger == nil {
		panic("alert: Log: the logger is nil")
	}
	return Func("log", func(ctx context.Context, a Alert) error {
		level := slog.LevelWarn
		if a.State == Resolved {
			level = slog.LevelInfo
		}
		logger.LogAttrs(ctx, level, "alert "+string(a.State), logAttrs(a)...)
		return nil
	})
}

func logAttrs(a Alert) []slog.Attr {
	attrs := []slog.Attr{
		slog.String("weir.alert.rule", a.Rule), slog.String("weir.alert.summary", a.Summary),
		slog.Float64("weir.alert.value", a.Value), slog.Time("weir.alert.starts_at", a.StartsAt),
	}
	if a.State == Resolved {
		attrs = append(attrs, slog.Time("weir.alert.ends_at", a.EndsAt))
	}
	if a.Key != "" {
		attrs = append(attrs, slog.String("weir.group.key", a.Key))
	}
	if severity := a.Labels[labelSeverity]; severity != "" {
		attrs = append(attrs, slog.String("weir.alert.severity", severity))
	}
	var annotations []slog.Attr
	for _, name := range slices.Sorted(maps.Keys(a.Annotations)) {
		if name != "summary" { // the summary is a separate attribute
			annotations = append(annotations, slog.String(name, a.Annotations[name]))
		}
	}
	if len(annotations) > 0 {
		attrs = append(attrs, slog.GroupAttrs("weir.alert.annotations", annotations...))
	}
	return append(attrs, slog.String("weir.alert.id", a.ID))
}
