package breaker

import (
	"math"
	"slices"
	"time"

	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/window"
)

// ShadowTotals returns what the breaker would have done in the state Shadow, over its whole life:
// how many times it would have opened, and how many calls it would have refused.
func (b *Breaker) ShadowTotals() (opened, refused int64) {
	b = b.current()
	return b.shadowOpened.Load(), b.shadowRefused.Load()
}

// series are the lines that a breaker shows, made when it is first observed.
type series struct {
	state, transitions, time       [stateCount]*stat.Series
	calls                          [4]*stat.Series // by outcome: success, failure, ignored, refused
	window                         [4]*stat.Series
	slow, late, abandoned, dropped *stat.Series
	failureRatio, slowRatio        *stat.Series
	thresholdRatio, thresholdCalls *stat.Series
	remaining, duration, active    *stat.Series
}

// outcomes are the values of the outcome attribute, in the order of figures.
var outcomes = [4]string{"success", "failure", "ignored", "refused"}

func figures(c window.Counts) [4]int64 {
	return [4]int64{c.Successes, c.Failures, c.Ignored, c.Refused}
}

// newSeries makes them as of when the breaker began, which is when all counted 0.
func newSeries(name, key string, began time.Time) *series {
	of := func(i *stat.Instrument, values ...string) *stat.Series {
		line := i.Series(slices.Concat([]string{name}, values, []string{key})...)
		line.Created = began
		return line
	}
	s := &series{
		slow: of(instrument.BreakerSlowCalls), late: of(instrument.BreakerLateResults),
		abandoned: of(instrument.BreakerAbandonedProbes), dropped: of(instrument.BreakerDroppedChanges),
		failureRatio: of(instrument.BreakerWindowFailureRatio), slowRatio: of(instrument.BreakerWindowSlowRatio),
		thresholdRatio: of(instrument.BreakerThresholdFailureRatio), thresholdCalls: of(instrument.BreakerThresholdMinCalls),
		remaining: of(instrument.BreakerOpenRemaining), duration: of(instrument.BreakerCallDuration), active: of(instrument.BreakerCallActive),
	}
	for i, state := range states {
		s.state[i] = of(instrument.BreakerState, string(state))
		s.transitions[i] = of(instrument.BreakerTransitions, string(state))
		s.time[i] = of(instrument.BreakerStateTime, string(state))
	}
	for i, o := range outcomes {
		s.calls[i] = of(instrument.BreakerCalls, o)
		s.window[i] = of(instrument.BreakerWindowCalls, o)
	}
	return s
}

func (b *Breaker) lines() *series {
	b.series.Do(func() { b.shown = newSeries(b.name, b.hold.text(), b.clock.Epoch) })
	return b.shown
}

// Histograms yields how long all calls took, if Config.Latency is set. It takes no
// lock.
func (b *Breaker) Histograms(yield func(*stat.Series, stat.Histogram) bool) {
	b = b.current()
	if p := b.phase.Load(); p.rules.config.Latency {
		yield(b.lines().duration, b.lifetime(p).Histogram())
	}
}

// Observe yields the breaker's figures. It takes no lock.
func (b *Breaker) Observe(yield func(*stat.Series, float64) bool) {
	b = b.current()
	b.observe(b.lines(), yield)
}

// observe yields them under the given series. Like the parts that it is made of, it
// reports whether the reader wants more.
func (b *Breaker) observe(s *series, yield func(*stat.Series, float64) bool) bool {
	at := b.seenNow()
	return b.observeStates(s, at, yield) && b.observeWindow(s, at, yield) && b.observeTotals(s, yield)
}

func (b *Breaker) observeWindow(s *series, at time.Duration, yield func(*stat.Series, float64) bool) bool {
	counts, r := b.counts(at), b.phase.Load().rules
	for i, n := range figures(counts) {
		if !yield(s.window[i], float64(n)) {
			return false
		}
	}
	judged := counts.Calls() >= r.minCalls
	return (!judged || yield(s.failureRatio, counts.FailureRate())) &&
		(!judged || r.slowRate == never || yield(s.slowRatio, counts.SlowRate())) &&
		(r.failureRate == never || yield(s.thresholdRatio, r.config.FailureRate)) &&
		yield(s.thresholdCalls, float64(r.minCalls))
}

func (b *Breaker) observeTotals(s *series, yield func(*stat.Series, float64) bool) bool {
	totals := b.totals()
	for i, n := range figures(window.Counts(totals)) {
		if !yield(s.calls[i], float64(n)) {
			return false
		}
	}
	return yield(s.slow, float64(totals.Slow)) &&
		yield(s.late, float64(b.late.Load())) &&
		yield(s.abandoned, float64(b.abandoned.Load())) &&
		yield(s.dropped, float64(b.changes.dropped.Load())) &&
		(!b.phase.Load().rules.config.Active || yield(s.active, float64(b.active.Load())))
}

func (b *Breaker) observeStates(s *series, at time.Duration, yield func(*stat.Series, float64) bool) bool {
	p := b.phase.Load()
	now, spent, entered := p.history(at)
	at = max(at, now.since)
	if now.state != evicted { // whose time is over
		*spent.of(now.state) += at - now.since
	}
	if now.state == Open && now.until != math.MaxInt64 && !yield(s.remaining, (now.until-at).Seconds()) {
		return false
	}
	for i, state := range states {
		is := 0.0
		if state == now.state {
			is = 1
		}
		if !yield(s.state[i], is) || !yield(s.transitions[i], float64(entered[i])) ||
			!yield(s.time[i], b.longest(i, spent[i]).Seconds()) {
			return false
		}
	}
	return true
}

// longest returns the time spent in the state, or more where more was shown before: a
// change may count from a moment before the one at which somebody looked.
func (b *Breaker) longest(state int, spent time.Duration) time.Duration {
	shown := &b.shownTimes[state]
	for old := shown.Load(); ; old = shown.Load() {
		if int64(spent) <= old {
			return time.Duration(old)
		}
		if shown.CompareAndSwap(old, int64(spent)) {
			return spent
		}
	}
}
