package alert

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// Monitor evaluates rules and delivers their alerts.
//
// Run does both until its context is done. The other methods, except for Evaluate, may be called
// from any number of goroutines, and Alerts, Observe and Histograms by the rules themselves too.
// Evaluate panics if it is called while another evaluation or Run is in progress.
type Monitor struct {
	config   Config
	watches  []*watch
	outboxes []*outbox
	series   *monitorSeries

	evaluating atomic.Bool
	now        time.Time // the latest evaluation; of the one who evaluates
	alerts     atomic.Pointer[[]Alert]
}

// NewMonitor returns a monitor of the rules. It panics with the error of [Validate] if there is one.
func NewMonitor(c Config, rules ...Rule) *Monitor {
	if err := Validate(c, rules...); err != nil {
		panic(err)
	}
	m := &Monitor{config: c.orDefault()}
	for _, r := range rules {
		m.watches = append(m.watches, newWatch(r, m.config))
	}
	for _, n := range c.Notify {
		m.outboxes = append(m.outboxes, newOutbox(n, m.config.Timeout, m.config.Logger))
	}
	m.series = newMonitorSeries(m.watches, m.outboxes)
	m.alerts.Store(&[]Alert{})
	return m
}

// Run evaluates the rules and delivers their alerts until ctx is done, and returns nil then, so
// that it can be a function of an errgroup. It evaluates at once, again after a random part of the
// interval, so that the processes of a fleet do not evaluate at the same time, and then at every
// interval.
//
// Run waits for the goroutines that it has started, except for those that hang in a rule or a
// notifier. Alerts that have not been delivered when it returns are delivered by the next Run or by
// Flush.
func (m *Monitor) Run(ctx context.Context) error {
	m.begin()
	defer m.end()
	var deliveries sync.WaitGroup
	defer deliveries.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, o := range m.outboxes {
		deliveries.Go(func() { o.run(ctx) })
	}
	m.evaluate(ctx, time.Now())
	if sleep(ctx, rand.N(m.config.Interval)) != nil {
		return nil
	}
	ticker := time.NewTicker(m.config.Interval)
	defer ticker.Stop()
	for {
		m.evaluate(ctx, time.Now())
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// Evaluate evaluates every rule once, as of the time t, and delivers nothing: Flush does. It is for
// tests, for replays and for programs that decide themselves when to evaluate. A time before that
// of an earlier evaluation counts as the time of the earlier one.
func (m *Monitor) Evaluate(t time.Time) {
	m.begin()
	defer m.end()
	m.evaluate(context.Background(), t)
}

func (m *Monitor) begin() {
	if !m.evaluating.CompareAndSwap(false, true) {
		panic("alert: the monitor is evaluating already")
	}
}

func (m *Monitor) end() { m.evaluating.Store(false) }

// evaluate looks at each rule in turn. If the context ends meanwhile, what the rules
// before have found is left for the next evaluation to tell.
func (m *Monitor) evaluate(ctx context.Context, t time.Time) {
	if m.now.IsZero() {
		m.now = time.Unix(0, 0) // a time that is not set, such as the zero time, is stale
	}
	if t.After(m.now) {
		m.now = t
	}
	var alerts []Alert
	for _, w := range m.watches {
		was := w.working.latest
		found, how := w.evaluate(ctx, m.now)
		if ctx.Err() != nil {
			return
		}
		w.tell(m.config.Logger, was, how)
		alerts = append(alerts, found...)
	}
	m.alerts.Store(&alerts)
	for _, o := range m.outboxes {
		o.offer(alerts, m.now)
	}
}

// Alerts returns what the latest evaluation found: alerts that are pending, that
// fire, and that have resolved in the last 15 minutes, in the order of the rules
// and then of their members' keys. The caller owns the list.
func (m *Monitor) Alerts() []Alert { return cloned(*m.alerts.Load()) }

// cloned returns copies that may be handed to the user's code.
func cloned(alerts []Alert) []Alert {
	copies := make([]Alert, len(alerts))
	for i, a := range alerts {
		copies[i] = a
		copies[i].Labels, copies[i].Annotations = maps.Clone(a.Labels), maps.Clone(a.Annotations)
	}
	return copies
}

// Flush delivers to each notifier what was not yet delivered. It returns when that is done, except for
// alerts that are refused once more, or when ctx is done. It returns an error if anything is left. It
// does not wait where a receiver has asked Run to wait.
func (m *Monitor) Flush(ctx context.Context) error {
	errs := make([]error, len(m.outboxes))
	var deliveries sync.WaitGroup
	for i, o := range m.outboxes {
		deliveries.Go(func() { errs[i] = o.flush(ctx) })
	}
	deliveries.Wait()
	return errors.Join(errs...)
}
