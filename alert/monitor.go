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

// Monitor evaluates rules and delivers their alerts. A Monitor must be created by [NewMonitor].
//
// Run does both until its context is done. All methods except Run and Evaluate are safe for
// concurrent use. Rules may call Alerts, Observe and Histograms too. Run and Evaluate panic if
// another Run or Evaluate is in progress.
type Monitor struct {
	config     Config
	evaluators []*evaluator
	deliverers []*deliverer
	series     *monitorSeries

	evaluating atomic.Bool
	now        time.Time // of the latest evaluation; guarded by evaluating
	alerts     atomic.Pointer[[]Alert]
}

// NewMonitor returns a monitor of the rules. It panics with the error of [Validate] if there is
// one.
func NewMonitor(c Config, rules ...Rule) *Monitor {
	if err := Validate(c, rules...); err != nil {
		panic(err)
	}
	m := &Monitor{config: c.orDefault()}
	for _, r := range rules {
		m.evaluators = append(m.evaluators, newEvaluator(r, m.config))
	}
	for _, n := range c.Notify {
		m.deliverers = append(m.deliverers, newDeliverer(n, m.config.Timeout, m.config.Logger))
	}
	m.series = newMonitorSeries(m.evaluators, m.deliverers)
	m.alerts.Store(&[]Alert{})
	return m
}

// Run evaluates the rules and delivers their alerts until ctx is done, and then returns nil, as the
// functions of an errgroup do. It evaluates at once, again after a random part of the interval, and
// then at every interval. The random part keeps the processes of a fleet from evaluating at the
// same time.
//
// Run waits for the goroutines that it started, except for those that hang in a rule or a notifier.
// Alerts that are undelivered when it returns are delivered by Flush or by the next Run.
func (m *Monitor) Run(ctx context.Context) error {
	m.begin()
	defer m.end()
	var deliveries sync.WaitGroup
	defer deliveries.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, d := range m.deliverers {
		deliveries.Go(func() { d.run(ctx) })
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

// Evaluate evaluates every rule once, as of the time t. It delivers nothing: call Flush for that.
// Evaluate is for tests, for replays and for programs with a schedule of their own. A time before
// that of an earlier evaluation counts as the earlier evaluation's time.
func (m *Monitor) Evaluate(t time.Time) {
	m.begin()
	defer m.end()
	m.evaluate(context.Background(), t)
}

// Flush makes at least one attempt to deliver each undelivered alert to each notifier, including
// alerts that were refused before, and repeats attempts that fail. It returns nil if everything was
// delivered, and an error if alerts are refused again or ctx ends first. It does not wait for a
// pause that a receiver has asked Run for. Call Flush at the end of a program, after ctx of Run is
// done.
func (m *Monitor) Flush(ctx context.Context) error {
	errs := make([]error, len(m.deliverers))
	var deliveries sync.WaitGroup
	for i, d := range m.deliverers {
		deliveries.Go(func() { errs[i] = d.flush(ctx) })
	}
	deliveries.Wait()
	return errors.Join(errs...)
}

// Alerts returns the alerts found by the latest evaluation: those that are pending or firing, and
// those that resolved in the last 15 minutes. They are in the order of the rules, and of the
// members' keys within a rule. The caller owns the result.
func (m *Monitor) Alerts() []Alert { return cloned(*m.alerts.Load()) }

func (m *Monitor) begin() {
	if !m.evaluating.CompareAndSwap(false, true) {
		panic("alert: the monitor is evaluating already")
	}
}

func (m *Monitor) end() { m.evaluating.Store(false) }

// evaluate evaluates each rule in turn. If ctx ends meanwhile, it publishes nothing, and the next
// evaluation reports what the rules before have found.
func (m *Monitor) evaluate(ctx context.Context, t time.Time) {
	if m.now.IsZero() {
		m.now = time.Unix(0, 0) // the zero time of a caller is stale
	}
	if t.After(m.now) {
		m.now = t
	}
	var alerts []Alert
	for _, e := range m.evaluators {
		before := e.stats.latest
		found, result := e.evaluate(ctx, m.now)
		if ctx.Err() != nil {
			return
		}
		e.log(m.config.Logger, before, result)
		alerts = append(alerts, found...)
	}
	m.alerts.Store(&alerts)
	for _, d := range m.deliverers {
		d.update(alerts, m.now)
	}
}

// cloned returns copies that user code may change.
func cloned(alerts []Alert) []Alert {
	copies := make([]Alert, len(alerts))
	for i, a := range alerts {
		copies[i] = a
		copies[i].Labels, copies[i].Annotations = maps.Clone(a.Labels), maps.Clone(a.Annotations)
	}
	return copies
}
