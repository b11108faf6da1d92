package breaker

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/window"
)

// series are the series of one breaker.
type series struct {
	state, transitions, time       [stateCount]*stat.Series
	calls, window                  [4]*stat.Series // by outcome: success, failure, ignored, refused
	slow, late, abandoned, dropped *stat.Series
	failureRatio, slowRatio        *stat.Series
	thresholdRatio, thresholdCalls *stat.Series
	remaining, duration            *stat.Series
}

// outcomes are the values of the outcome attribute, in the order of byOutcome.
var outcomes = [4]string{"success", "failure", "ignored", "refused"}

func byOutcome(c window.Counts) [4]int64 {
	return [4]int64{c.Successes, c.Failures, c.Ignored, c.Refused}
}

// newSeries returns the series of a breaker whose counters were all 0 at the given time.
func newSeries(name, key string, began time.Time) *series {
	of := func(i *stat.Instrument, values ...string) *stat.Series {
		s := i.Series(slices.Concat([]string{name}, values, []string{key})...)
		s.Created = began
		return s
	}
	s := &series{
		slow: of(instrument.BreakerSlowCalls), late: of(instrument.BreakerLateResults),
		abandoned: of(instrument.BreakerAbandonedProbes), dropped: of(instrument.BreakerDroppedChanges),
		failureRatio: of(instrument.BreakerWindowFailureRatio), slowRatio: of(instrument.BreakerWindowSlowRatio),
		thresholdRatio: of(instrument.BreakerThresholdFailureRatio), thresholdCalls: of(instrument.BreakerThresholdMinCalls),
		remaining: of(instrument.BreakerOpenRemaining), duration: of(instrument.BreakerCallDuration),
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

// observed is what a breaker needs once its metrics are read.
type observed struct {
	makeSeries sync.Once
	series     *series
	// the longest time in each state that was reported to observers
	longestShown perState[atomic.Int64]
}

func (b *Breaker) observedParts() *observed {
	if o := b.observed.Load(); o != nil {
		return o
	}
	b.observed.CompareAndSwap(nil, new(observed))
	return b.observed.Load()
}

func (b *Breaker) ownSeries() *series {
	o := b.observedParts()
	o.makeSeries.Do(func() { o.series = newSeries(b.name, b.member.text(), b.clock.Epoch) })
	return o.series
}

// Histograms yields the durations of all calls, if Config.Latency is set. It takes no lock.
func (b *Breaker) Histograms(yield func(*stat.Series, stat.Histogram) bool) {
	if p := b.regime.Load(); p.rules.config.Latency {
		h := b.lifetimeLatency(p).Histogram()
		h.Exemplars = b.keptExemplars()
		yield(b.ownSeries().duration, h)
	}
}

// Observe yields the metrics of the breaker. It takes no lock.
func (b *Breaker) Observe(yield func(*stat.Series, float64) bool) {
	b.observe(b.ownSeries(), yield)
}

// observe yields the metrics with the given series, and reports whether yield wants more.
func (b *Breaker) observe(s *series, yield func(*stat.Series, float64) bool) bool {
	at := b.peekNow()
	return b.observeStates(s, at, yield) && b.observeWindow(s, at, yield) && b.observeTotals(s, yield)
}

func (b *Breaker) observeStates(s *series, at time.Duration, yield func(*stat.Series, float64) bool) bool {
	now, spent, entered := b.regime.Load().history(at)
	at = max(at, now.since)
	longest := &b.observedParts().longestShown
	*spent.of(now.state) += at - now.since
	if now.state == Open && now.until != math.MaxInt64 && !yield(s.remaining, (now.until-at).Seconds()) {
		return false
	}
	for i, state := range states {
		is := 0.0
		if state == now.state {
			is = 1
		}
		if !yield(s.state[i], is) || !yield(s.transitions[i], float64(entered[i])) ||
			!yield(s.time[i], raiseLongestShown(&longest[i], int64(spent[i])).Seconds()) {
			return false
		}
	}
	return true
}

// raiseLongestShown returns the longer of the time spent in a state and the longest time that was
// shown before. The time spent may become shorter, because a transition may have a time before the
// latest observation. But a counter must not fall.
func raiseLongestShown(shown *atomic.Int64, spent int64) time.Duration {
	for {
		old := shown.Load()
		if spent <= old || shown.CompareAndSwap(old, spent) {
			return time.Duration(max(spent, old))
		}
	}
}

func (b *Breaker) observeWindow(s *series, at time.Duration, yield func(*stat.Series, float64) bool) bool {
	c, r := b.counts(at), b.regime.Load().rules
	for i, n := range byOutcome(c) {
		if !yield(s.window[i], float64(n)) {
			return false
		}
	}
	judged := c.Calls() >= r.minCalls
	return (!judged || yield(s.failureRatio, c.FailureRate())) &&
		(!judged || r.slowRate == neverReached || yield(s.slowRatio, c.SlowRate())) &&
		(r.failureRate == neverReached || yield(s.thresholdRatio, r.config.FailureRate)) &&
		yield(s.thresholdCalls, float64(r.minCalls))
}

func (b *Breaker) observeTotals(s *series, yield func(*stat.Series, float64) bool) bool {
	totals := b.Totals()
	for i, n := range byOutcome(window.Counts(totals)) {
		if !yield(s.calls[i], float64(n)) {
			return false
		}
	}
	r := b.rareSoFar()
	return yield(s.slow, float64(totals.Slow)) &&
		yield(s.late, float64(r.late.Load())) &&
		yield(s.abandoned, float64(r.abandoned.Load())) &&
		yield(s.dropped, float64(r.changes.dropped.Load()))
}
