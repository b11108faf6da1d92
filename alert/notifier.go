package alert

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/stat"
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
//
// The notifiers of package alert/notify are also a [stat.HistogramSource] and a
// [github.com/weir-go/weir/stat/view.Viewer], for the breaker of their server.
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

// The kinds of failed deliveries: see DeliveryError.Kind.
const (
	kindTimeout     = "timeout"
	kindUnreachable = "unreachable"
	kindBreakerOpen = "breaker_open"
	kindPanic       = "panic" // the notifier panicked or ended its goroutine
)

// errorKinds are the values of the attribute error.type in the order of the metrics.
var errorKinds = [...]string{"_OTHER", kindTimeout, kindUnreachable, "http_4xx", "http_5xx", kindBreakerOpen, kindPanic}

// kindIndex returns the index of kind in errorKinds, or that of _OTHER.
func kindIndex(kind string) int { return max(slices.Index(errorKinds[:], kind), 0) }

// DeliveryError is an error of a notifier that says whether and when the monitor should try again.
// After any other error the monitor tries again. If that error has a RetryAfter method, the monitor
// waits at least as long as that method says, up to 1h.
type DeliveryError struct {
	// Kind is the attribute error.type of the metrics:
	//
	//   - "timeout": there was no answer in time, so the alert may have arrived.
	//   - "unreachable": there was no connection.
	//   - "http_4xx" or "http_5xx": the receiver answered with such a status.
	//   - "breaker_open": the notifier's breaker is open, so nothing was sent.
	//
	// Any other text counts as _OTHER. Default "".
	Kind string
	// Permanent means that the same alert would fail again. The monitor drops it.
	Permanent bool
	// Refused means that the receiver does not accept the alert, maybe only for now. The monitor
	// tries it again after minutes.
	Refused bool
	// Pause is the minimum wait before the next attempt, up to 1h. Default the wait that Err asks
	// for, if it has a method RetryAfter() time.Duration.
	Pause time.Duration
	// Err is the cause. It may be nil.
	Err error
}

// Error returns the text of Err, or the Kind if Err is nil.
func (e *DeliveryError) Error() string {
	if e.Err == nil {
		return "alert: not delivered: " + errorKinds[kindIndex(e.Kind)]
	}
	return fmt.Sprintf("alert: not delivered: %v", e.Err)
}

// Unwrap returns Err.
func (e *DeliveryError) Unwrap() error { return e.Err }

// RetryAfter returns how long to wait before the next attempt: Pause, or if that is 0 the result of
// the first RetryAfter method in Err's tree, or 0 if there is none.
func (e *DeliveryError) RetryAfter() time.Duration {
	var waiting interface{ RetryAfter() time.Duration }
	if e.Pause == 0 && errors.As(e.Err, &waiting) {
		return waiting.RetryAfter()
	}
	return e.Pause
}

// rejected reports whether the receiver has answered and does not accept the alerts.
func (e *DeliveryError) rejected() bool { return e.Permanent || e.Refused }

// asDeliveryError returns the DeliveryError in err's tree, or a new one with the cause err.
func asDeliveryError(err error) *DeliveryError {
	if e, ok := errors.AsType[*DeliveryError](err); ok {
		return e
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return &DeliveryError{Kind: kindTimeout, Err: err}
	}
	return &DeliveryError{Err: err}
}

// Refusals is the number of calls in the last span that were refused by a breaker, a limiter or a
// throttle, by a gate's breaker and its limiter together, or by all members of a group. It is read
// from the metrics that the source exports. Calls that wait and are then allowed are not refused.
// The gates of a weir.Group share the refusal counts of their limiters, so pass the group to
// Refusals and not its gates.
//
// Until the monitor has run for a whole span the number is too low, so a Below condition has no
// data until then.
func Refusals(of stat.Source, span time.Duration) Value {
	return counted("number of refused calls over "+shortText(span), of, span, isRefusals)
}

// isRefusals reports whether a series counts refused calls.
func isRefusals(s *stat.Series) bool {
	return refusalInstruments[s.Instrument.Name] && len(s.Values) > 1 && s.Values[1] == "refused"
}

// refusalInstruments count calls by their outcome, which is the second attribute.
var refusalInstruments = map[string]bool{
	instrument.BreakerCalls.Name: true, instrument.LimiterRequests.Name: true, instrument.WindowEvents.Name: true,
}

// testRule is the rule name of test messages.
const testRule = "weir test"

// Test sends a test message to the notifier with the name: an alert of a rule "weir test" with the
// severity "info", which fires and then resolves, so that receivers close what they opened. It
// makes one attempt for each of the two states, with the timeout of the monitor, and returns the
// error of the first attempt that fails. Silences and statistics are not affected. Test works
// whether or not Run is running.
//
// If group_wait makes an Alertmanager wait before it notifies, it drops the message, because the
// alert has resolved by then. A nil error means that the Alertmanager accepted the message.
func (m *Monitor) Test(ctx context.Context, notifier string) error {
	s := m.setup.Load()
	at := slices.IndexFunc(s.deliverers, func(d *deliverer) bool { return d.name == notifier })
	if at < 0 {
		return fmt.Errorf("alert: the monitor has no notifier %.100q", notifier)
	}
	d := s.deliverers[at]
	if err := d.attempt.lock(ctx); err != nil {
		return err
	}
	defer d.attempt.unlock()
	for _, a := range s.config.testAlerts(time.Now()) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if failed := d.receiver.Load().send(ctx, []Alert{a}); failed != nil {
			return fmt.Errorf("alert: test of notifier %q: %s message: %w", notifier, a.State, failed)
		}
	}
	return nil
}

// testAlerts returns a firing alert and its resolution.
func (c Config) testAlerts(now time.Time) []Alert {
	labels := map[string]string{labelRule: testRule, labelSeverity: "info"}
	if c.Instance != noInstance {
		labels[labelInstance] = c.Instance
	}
	fires := Alert{
		ID: fingerprint(labels), Rule: testRule, Labels: labels, State: Firing,
		Summary: "This is a test message. Nothing is wrong.", Value: 1, ActiveAt: now, StartsAt: now,
	}
	resolves := fires
	resolves.State, resolves.EndsAt = Resolved, now
	resolves.Summary = "This is the end of a test message. Nothing was wrong."
	return cloned([]Alert{fires, resolves})
}
