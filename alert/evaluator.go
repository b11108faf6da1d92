package alert

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"math"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/latency"
)

// evaluator evaluates one rule of a monitor.
type evaluator struct {
	rule     Rule
	budget   time.Duration
	guard    guard
	sampling *sampling
	trackers map[string]*tracker // by the label "key"

	durations latency.Sparse
	// The evaluating goroutine counts in stats. Other goroutines read published, a copy that never
	// changes.
	stats     ruleStats
	published atomic.Pointer[ruleStats]
}

type ruleStats struct {
	alerts      [phases]int64 // by their phase
	transitions [phases]int64 // by the phase entered
	evaluations [faults]int64
	missing     [missings]int64 // alerts without data in the latest evaluation, by the reason
	noData      NoData          // of the rule
	latest      faultKind
	// the first of the evaluations that failed since the last success, or zero
	failingSince time.Time
	value        float64 // the worst value of the latest evaluation
	hasValue     bool
	valueName    string

	rule, severity string // of the rule when this was published
	when           Condition
	at             time.Time // of the latest evaluation
}

func newEvaluator(r Rule, c Config) *evaluator {
	e := &evaluator{rule: ownRule(r, c), budget: c.Budget, sampling: r.Value.beginSampling(nil), trackers: map[string]*tracker{}}
	if !r.Value.each {
		e.trackers[""] = newTracker(&e.rule, "")
		e.stats.alerts[inactive] = 1
	}
	e.publish()
	return e
}

// ownRule returns a copy of a rule with the labels of a monitor.
func ownRule(r Rule, c Config) Rule {
	labels := map[string]string{}
	if c.Instance != noInstance {
		labels[labelInstance] = c.Instance
	}
	maps.Copy(labels, r.Labels)
	r.Labels, r.Annotations = labels, maps.Clone(r.Annotations)
	return r
}

// evaluate evaluates the rule and returns its alerts. If ctx ends meanwhile, the state of the
// alerts stays as it was.
func (e *evaluator) evaluate(ctx context.Context, w *worker, at time.Time) ([]Alert, outcome) {
	began := time.Now()
	readings, complete, result := e.read(ctx, w, at)
	if ctx.Err() != nil {
		return nil, result
	}
	if complete {
		if resolvedEarly := e.apply(readings, at); resolvedEarly && result.fault == noFault {
			result.fault = tooManyAbsent
		}
	} else {
		e.applyNoData(at)
	}
	alerts := e.alerts(at)
	if described := e.describe(ctx, w, alerts); result.fault == noFault {
		result = described
	}
	e.count(result.fault, readings, at)
	e.durations.Record(time.Since(began))
	return alerts, result
}

// read reads the value of each member. complete is false if the members are unknown because user
// code failed. A value that is not finite counts as missing data.
func (e *evaluator) read(ctx context.Context, w *worker, at time.Time) (_ []reading, complete bool, _ outcome) {
	// The readings are not a named result: user code that hangs may write to its variables later.
	var readings []reading
	var sampled outcome
	sample := e.sampling.sample // user code that hangs must not use a later sampler
	result := w.call(ctx, &e.guard, e.budget, func() {
		sampled = sample(at, func(r reading) { readings = append(readings, r) })
	})
	if result.fault != noFault {
		return nil, false, result
	}
	for i, r := range readings {
		if r.measured.OK && (math.IsNaN(r.measured.Value) || math.IsInf(r.measured.Value, 0)) {
			readings[i].measured = measurement{why: failedRule}
			if sampled.fault == noFault {
				sampled.fault = notFinite
			}
		}
	}
	return readings, true, sampled
}

// apply advances the alerts of all members, present or absent. It reports whether an alert resolved
// early because too many members are absent.
func (e *evaluator) apply(readings []reading, at time.Time) (resolvedEarly bool) {
	present := make(map[string]bool, len(readings))
	for _, r := range readings {
		present[r.key] = true
		t := e.trackers[r.key]
		if t == nil {
			t = newTracker(&e.rule, r.key)
			e.trackers[r.key] = t
		}
		t.valueName = cmp.Or(r.valueName, t.valueName)
		e.countTransition(t, t.applyMeasurement(r.measured, at))
	}
	var absent []*tracker
	for key, t := range e.trackers {
		if present[key] {
			continue
		}
		e.countTransition(t, t.applyAbsence(at))
		if t.exists() {
			absent = append(absent, t)
		} else {
			delete(e.trackers, key)
		}
	}
	return e.limitAbsent(absent, at)
}

// applyNoData advances all alerts without data.
func (e *evaluator) applyNoData(at time.Time) {
	for _, t := range e.trackers {
		e.countTransition(t, t.applyMeasurement(measurement{why: failedRule}, at))
	}
}

// maxAbsent is how many alerts of absent members a rule remembers.
const maxAbsent = 1000

// limitAbsent forgets alerts of absent members if there are more than maxAbsent: first the alerts
// that an earlier evaluation has resolved, and then the firing ones, the oldest of each first. A
// firing alert is resolved before it is forgotten, so that its receivers are notified. limitAbsent
// reports whether it resolved one, which is before Rule.KeepFiring has passed.
func (e *evaluator) limitAbsent(absent []*tracker, at time.Time) (resolvedEarly bool) {
	if len(absent) <= maxAbsent {
		return false
	}
	slices.SortFunc(absent, func(a, b *tracker) int { // no alert of an absent member is pending
		return cmp.Or(cmp.Compare(a.phase, b.phase), a.clearedSince().Compare(b.clearedSince()))
	})
	for _, t := range absent[:len(absent)-maxAbsent] {
		switch {
		case t.phase == firing:
			resolvedEarly = true
			e.countTransition(t, t.resolve(at))
		case !t.resolvedAt.Equal(at): // an alert that has just resolved is yet to be reported
			delete(e.trackers, t.labels[labelKey])
		}
	}
	return resolvedEarly
}

// alerts returns the alerts that exist, sorted by key.
func (e *evaluator) alerts(at time.Time) []Alert {
	var alerts []Alert
	for _, t := range e.trackers {
		if t.exists() {
			alerts = append(alerts, t.alert(at))
			t.reported = true
		}
	}
	slices.SortFunc(alerts, func(a, b Alert) int { return cmp.Compare(a.Key, b.Key) })
	return alerts
}

// describe sets the summaries to what Rule.Describe returns. If Describe fails for an alert, its
// default summary stays.
func (e *evaluator) describe(ctx context.Context, w *worker, alerts []Alert) outcome {
	if e.rule.Describe == nil || len(alerts) == 0 {
		return outcome{}
	}
	copies := cloned(alerts)
	texts := make([]string, len(alerts))
	var described outcome
	describe := e.rule.Describe
	result := w.call(ctx, &e.guard, e.budget, func() {
		for i, a := range copies {
			texts[i] = a.Summary
			if one := recovered(func() { texts[i] = describe(a) }); one.fault != noFault {
				described = one
			}
		}
	})
	if result.fault != noFault {
		return result
	}
	for i := range alerts {
		alerts[i].Summary = summaryText(texts[i])
	}
	return described
}

func (e *evaluator) countTransition(t *tracker, changed bool) {
	if changed {
		e.stats.transitions[t.phase]++
	}
}

// count adds one evaluation to the statistics and publishes them.
func (e *evaluator) count(f faultKind, readings []reading, at time.Time) {
	e.stats.evaluations[f]++
	e.stats.latest, e.stats.at = f, at
	switch {
	case f == noFault:
		e.stats.failingSince = time.Time{}
	case e.stats.failingSince.IsZero():
		e.stats.failingSince = at
	}
	e.stats.alerts = [phases]int64{}
	e.stats.missing = [missings]int64{}
	for _, t := range e.trackers {
		e.stats.alerts[t.phase]++
		e.stats.missing[t.missing]++
	}
	e.stats.hasValue, e.stats.valueName = false, e.rule.Value.name
	for _, r := range readings {
		e.stats.valueName = cmp.Or(r.valueName, e.stats.valueName)
		if m := r.measured; m.OK && (!e.stats.hasValue || e.rule.When.worse(m.Value, e.stats.value)) {
			e.stats.value, e.stats.hasValue = m.Value, true
		}
	}
	e.publish()
}

func (e *evaluator) publish() {
	stats := e.stats
	stats.rule, stats.severity, stats.when = e.rule.Name, e.rule.Severity, e.rule.When
	stats.noData = e.rule.NoData
	e.published.Store(&stats)
}

// ruleAttrs returns the log attributes of a rule, and of its member if key is not empty.
func ruleAttrs(rule, key string) []any {
	if key == "" {
		return []any{"weir.alert.rule", rule}
	}
	return []any{"weir.alert.rule", rule, "weir.group.key", key}
}

// log logs when the rule begins to fail, and when it no longer fails.
func (e *evaluator) log(logger *slog.Logger, before faultKind, result outcome) {
	of := ruleAttrs(e.rule.Name, result.key)
	switch {
	case result.fault == before:
	case result.fault == noFault:
		logger.Info("alert: rule recovered", of...)
	case result.fault == panicked:
		logger.Error("alert: rule panicked", append(of, "panic", result.value, "stack", string(result.stack))...)
	case result.fault == tooMany:
		logger.Error("alert: rule failed", append(of, "error", result.fault.String(), "limit", maxMembers)...)
	case result.fault == tooManyAbsent:
		logger.Error("alert: rule failed", append(of, "error", result.fault.String(), "limit", maxAbsent)...)
	default:
		logger.Error("alert: rule failed", append(of, "error", result.fault.String())...)
	}
}

// faultKind is what went wrong in an evaluation or an attempt.
type faultKind uint8

const (
	noFault faultKind = iota
	panicked
	hung
	exited
	notFinite
	tooMany
	sameLabel
	tooManyAbsent
	faults // the number of faults
)

// String returns the fault as the attribute error.type of metrics.
func (f faultKind) String() string {
	return [faults]string{"", "panic", "timeout", "goexit", "not_finite", "too_many_members", "same_key_text", "too_many_absent"}[f]
}

// gracePeriod is how long user code has to return after its context is done.
const gracePeriod = 100 * time.Millisecond

// guard runs user code that may panic, end its goroutine or never return. Code that does not return
// in time is left on its goroutine. Until it returns, the guard refuses further calls, so that at
// most one goroutine is lost. Guards that share a count refuse calls while maxRunning others run.
type guard struct {
	busy    atomic.Bool
	running *atomic.Int32 // nil if the guard shares no count
}

// maxRunning is how many notifiers of one name may hang at the same time. There can be several
// because a notifier that hangs can be replaced by another, which may hang too.
const maxRunning = 4

// outcome is how a guarded call ended.
type outcome struct {
	fault faultKind
	// the label "key" of the member whose value failed; empty if no member's value failed
	key   string
	value any    // the value of the panic
	stack []byte // of the panic
}

// call runs fn until it returns, or until ctx is done and gracePeriod has passed. If the outcome
// has a fault, fn may still be running, and what it writes must not be read.
func (g *guard) call(ctx context.Context, fn func()) outcome {
	if !g.begin() {
		return outcome{fault: hung}
	}
	done := make(chan outcome, 1)
	go g.run(fn, done)
	select {
	case o := <-done:
		return o
	case <-ctx.Done():
	}
	timer := time.NewTimer(gracePeriod)
	defer timer.Stop()
	select {
	case o := <-done:
		return o
	case <-timer.C:
		return outcome{fault: hung}
	}
}

// worker calls user code of rules on one goroutine, because a new goroutine and its stack take
// longer than most rules do. If that code hangs, the next call has another goroutine. The zero
// value is ready to use by one goroutine, which calls stop in the end.
type worker struct {
	jobs  chan job // nil if there is no goroutine
	done  chan outcome
	timer *time.Timer
}

type job struct {
	guard *guard
	fn    func()
}

// call is guard.call, and the code must also return within the budget and gracePeriod.
func (w *worker) call(ctx context.Context, g *guard, budget time.Duration, fn func()) outcome {
	if !g.begin() {
		return outcome{fault: hung}
	}
	if w.jobs == nil {
		w.start()
	}
	w.jobs <- job{g, fn}
	w.timer.Reset(budget)
	ended := ctx.Done()
	for range 2 {
		select {
		case o := <-w.done:
			if o.fault == exited {
				w.stop()
			}
			return o
		case <-ended:
		case <-w.timer.C:
		}
		ended = nil
		w.timer.Reset(gracePeriod)
	}
	w.stop()
	return outcome{fault: hung}
}

func (w *worker) start() {
	jobs, done := make(chan job), make(chan outcome, 1)
	w.jobs, w.done = jobs, done
	if w.timer == nil {
		w.timer = time.NewTimer(gracePeriod)
	}
	go func() {
		for j := range jobs {
			j.guard.run(j.fn, done)
		}
	}()
}

// stop ends the goroutine when the user code has returned.
func (w *worker) stop() {
	if w.jobs != nil {
		close(w.jobs)
		w.timer.Stop()
	}
	w.jobs = nil
}

func (g *guard) begin() bool {
	if !g.busy.CompareAndSwap(false, true) {
		return false
	}
	if g.running != nil && g.running.Add(1) > maxRunning {
		g.end()
		return false
	}
	return true
}

func (g *guard) end() {
	if g.running != nil {
		g.running.Add(-1)
	}
	g.busy.Store(false)
}

func (g *guard) run(fn func(), done chan<- outcome) {
	o := outcome{fault: exited}
	defer func() {
		g.end()
		done <- o
	}()
	o = recovered(fn)
}

// recovered runs fn and returns its panic as an outcome. It runs on the goroutine of the user code:
// the monitor's own goroutine could not recover a panic there.
func recovered(fn func()) (o outcome) {
	defer func() {
		if p := recover(); p != nil {
			o = outcome{fault: panicked, value: p, stack: debug.Stack()}
		}
	}()
	fn()
	return outcome{}
}
