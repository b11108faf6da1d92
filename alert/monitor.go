package alert

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/clock"
)

// Monitor evaluates rules and delivers their alerts. A Monitor must be created by [NewMonitor].
//
// Run evaluates and delivers until its context is done. All methods except Run and Evaluate are
// safe for concurrent use. Rules may call Alerts, Observe and Histograms too. Run and Evaluate
// panic if another Run or Evaluate is in progress.
type Monitor struct {
	setup      atomic.Pointer[setup]
	silences   silences
	evaluating atomic.Bool
	alerts     atomic.Pointer[[]Alert]
	state      stateStore

	busy       sync.Mutex  // held during an evaluation and while the setup is replaced
	now        time.Time   // of the latest evaluation; guarded by busy
	retired    []*tracker  // of removed rules; guarded by busy
	deliveries *deliveries // of Run, or nil; guarded by busy

	mu   sync.Mutex
	next *nextSetup    // by the latest Reconfigure, until it is in effect
	wake chan struct{} // makes Run evaluate; nil without Run
}

// NewMonitor returns a monitor of the rules. It panics with the error of c.Validate(rules...)
// if there is one.
func NewMonitor(c Config, rules ...Rule) *Monitor {
	if err := c.Validate(rules...); err != nil {
		panic(err)
	}
	m := &Monitor{state: stateStore{path: c.StateFile}}
	m.setup.Store(&setup{})
	m.replaceSetup(newNextSetup(c, rules))
	m.alerts.Store(&[]Alert{})
	return m
}

// Run evaluates the rules and delivers their alerts until ctx is done, and then returns nil, as the
// functions of an errgroup do. It evaluates at once, again after a random part of the interval, and
// then at every interval. The random part keeps the processes of a fleet from evaluating at the
// same time. After Reconfigure, Run evaluates at once and then waits for a random part again.
//
// Run waits for the goroutines that it started, except for those that hang in a rule or a notifier.
// Alerts that are undelivered when it returns are delivered by Flush or by the next Run.
func (m *Monitor) Run(ctx context.Context) error {
	m.begin()
	defer m.end()
	ctx, cancel := context.WithCancel(ctx)
	deliveries := &deliveries{ctx: ctx, cancels: map[*deliverer]context.CancelFunc{}}
	wake := make(chan struct{}, 1) // made here: a synctest bubble cannot use a channel made outside
	m.setRunning(deliveries, wake)
	defer func() {
		cancel()
		m.setRunning(nil, nil)
		deliveries.all.Wait()
	}()
	for m.runUntilChanged(ctx, wake) {
	}
	return nil
}

// runUntilChanged evaluates the rules until the config changes or ctx is done. It returns true if
// the config has changed.
func (m *Monitor) runUntilChanged(ctx context.Context, wake <-chan struct{}) bool {
	m.evaluate(ctx, time.Now(), clock.ReadTolerance)
	interval := m.setup.Load().config.Interval
	timer := time.NewTimer(rand.N(interval))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-wake:
		return true
	case <-timer.C:
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		m.evaluate(ctx, time.Now(), clock.ReadTolerance)
		select {
		case <-ctx.Done():
			return false
		case <-wake:
			return true
		case <-ticker.C:
		}
	}
}

// Evaluate evaluates every rule once, as of the time t. It delivers nothing: call Flush for that.
// Evaluate is for tests, for replays and for programs with a schedule of their own. If t is before
// the time of an earlier evaluation, Evaluate uses that time instead, unless the clock is another
// one than before: see the package comment.
func (m *Monitor) Evaluate(t time.Time) {
	m.begin()
	defer m.end()
	m.evaluate(context.Background(), t, clock.GivenTolerance)
}

// Flush makes at least one attempt to deliver each undelivered alert to each notifier, including
// alerts that were refused before, and repeats attempts that fail. It returns nil if everything was
// delivered, and an error if alerts are refused again or ctx ends first. It does not wait for a
// pause that a receiver has asked Run for. Call Flush at the end of a program, after ctx of Run is
// done.
func (m *Monitor) Flush(ctx context.Context) error {
	deliverers := m.setup.Load().deliverers
	errs := make([]error, len(deliverers))
	var deliveries sync.WaitGroup
	for i, d := range deliverers {
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

// evaluate evaluates each rule in turn. If ctx ends meanwhile, it publishes nothing. The next
// evaluation then reports the results of the rules that were evaluated before ctx ended.
func (m *Monitor) evaluate(ctx context.Context, t time.Time, tolerance time.Duration) {
	m.evaluateOnce(ctx, t, tolerance)
	m.tryReplace() // for a Reconfigure during the evaluation
}

func (m *Monitor) evaluateOnce(ctx context.Context, t time.Time, tolerance time.Duration) {
	m.busy.Lock()
	defer m.busy.Unlock()
	m.replaceByNext()()
	if m.now.IsZero() {
		m.now = time.Unix(0, 0) // so that a zero t is earlier than m.now
	}
	s := m.setup.Load()
	if clock.IsNew(m.now, t.Sub(m.now), 0, tolerance) {
		m.restart(s, t)
	}
	if t.After(m.now) {
		m.now = t
	}
	m.restoreState(s)
	var alerts []Alert
	var w worker
	defer w.stop()
	for _, e := range s.evaluators {
		before := e.stats.latest
		found, result := e.evaluate(ctx, &w, m.now)
		if ctx.Err() != nil {
			return
		}
		e.log(s.config.Logger, before, result)
		alerts = append(alerts, found...)
	}
	alerts = append(alerts, m.retiredAlerts(alerts)...)
	m.silences.markSilenced(alerts, m.now)
	m.alerts.Store(&alerts)
	m.state.saveAlerts(s, alerts, m.retired, m.now)
	for _, d := range s.deliverers {
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

// restart lets all times begin again at t. Values are sampled as by a new monitor. Alerts stay
// pending or firing, and Rule.For and Rule.KeepFiring begin again.
func (m *Monitor) restart(s *setup, t time.Time) {
	m.now = t
	for _, e := range s.evaluators {
		e.sampling = e.rule.Value.beginSampling(nil)
		for _, one := range e.trackers {
			one.restart(t)
		}
	}
	for _, one := range m.retired {
		one.restart(t)
	}
	for _, d := range s.deliverers {
		d.mu.Lock()
		d.queue.restart(t)
		d.mu.Unlock()
	}
}

// restart moves the times of the alert that lie after t to t.
func (p *progress) restart(t time.Time) {
	for _, at := range []*time.Time{&p.activeAt, &p.firedAt, &p.clearedAt, &p.resolvedAt} {
		*at = notAfter(*at, t)
	}
}

// restart makes refused alerts due, and counts the time until an alert is repeated from t on.
func (q *queue) restart(t time.Time) {
	for _, e := range q.entries {
		e.changedAt = notAfter(e.changedAt, t)
		if !e.refusedAt.IsZero() {
			e.refusedAt = notAfter(e.refusedAt, t)
		}
	}
	q.makeRefusedDue()
}

// fairLock is a lock whose callers get it in the order in which they came, unless their contexts
// end before. Each caller that waits makes a channel: a channel that the lock kept could not be
// used outside of the testing/synctest bubble that it was made in. The zero value is unlocked.
type fairLock struct {
	mu      sync.Mutex
	locked  bool
	waiting []chan struct{} // closed when its caller has the lock
}

// lock returns nil when the caller has the lock, or the error of ctx.
func (l *fairLock) lock(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	if !l.locked {
		l.locked = true
		l.mu.Unlock()
		return nil
	}
	mine := make(chan struct{})
	l.waiting = append(l.waiting, mine)
	l.mu.Unlock()
	select {
	case <-mine:
		return nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	i := slices.Index(l.waiting, mine)
	if i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
	}
	l.mu.Unlock()
	if i < 0 { // the lock came at the same time
		l.unlock()
	}
	return ctx.Err()
}

func (l *fairLock) unlock() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.locked = len(l.waiting) > 0; l.locked {
		close(l.waiting[0])
		l.waiting = slices.Delete(l.waiting, 0, 1)
	}
}
