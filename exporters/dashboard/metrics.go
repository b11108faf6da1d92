package dashboard

import (
	"math"
	"slices"

	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/stat"
)

// The numbers of the page are those of instruments. An entry keeps the latest value of each series,
// and a row of the page reads each of its numbers by the instrument.

// sum returns the sum of the entry's series of an instrument, or 0 if there are none. If words are
// given, only series count whose attribute after the naming ones, such as the outcome, is one of
// them.
func (e *entry) sum(i *stat.Instrument, words ...string) (sum float64) {
	for _, f := range e.metrics {
		if f.series.Instrument == i && (len(words) == 0 || slices.Contains(words, f.series.Values[e.naming()])) {
			sum += f.last
		}
	}
	return sum
}

// gauge returns the value of an instrument, or NaN if the entry has none.
func (e *entry) gauge(i *stat.Instrument) float64 {
	value := math.NaN()
	for _, f := range e.metrics {
		if f.series.Instrument == i {
			value = f.last
		}
	}
	return value
}

// has reports whether the entry has series of an instrument.
func (e *entry) has(i *stat.Instrument) bool {
	return slices.ContainsFunc(e.metrics, func(f *metric) bool { return f.series.Instrument == i })
}

// totals are lifetime counts of calls. They only grow.
type totals struct {
	passed  float64 // allowed
	failed  float64 // of those passed
	refused float64
}

// totals returns the counts of the breaker, or of the limiter if there is no breaker. In a gate,
// both count the same calls.
func (e *entry) totals() totals {
	t := totals{
		passed:  e.sum(instrument.BreakerCalls, "success", "ignored", "failure"),
		failed:  e.sum(instrument.BreakerCalls, "failure"),
		refused: e.sum(instrument.BreakerCalls, "refused") + e.limitRefusals(),
	}
	if !e.has(instrument.BreakerCalls) {
		t.passed = e.sum(instrument.LimiterRequests, "allowed", "waited", "shadowed")
	}
	return t
}

// limitRefusals returns how many calls the limiter refused, in total.
func (e *entry) limitRefusals() float64 { return e.sum(instrument.LimiterRequests, "refused") }

// windowCalls returns the calls in the breaker's window, and the share of failures.
func (e *entry) windowCalls() (calls float64, failureRate number) {
	failures := e.sum(instrument.BreakerWindowCalls, "failure")
	calls = failures + e.sum(instrument.BreakerWindowCalls, "success")
	return calls, ratio(failures, calls)
}

// callsKind returns what an entry with calls is.
func (e *entry) callsKind() string {
	switch breaker, limiter := e.has(instrument.BreakerCalls), e.has(instrument.LimiterRequests); {
	case breaker && limiter:
		return "gate"
	case breaker:
		return "breaker"
	case limiter:
		return "limiter"
	}
	return ""
}

// stateStats is a state of a breaker or an alert, and how often it occurred.
type stateStats struct {
	name string
	// 1 for the current state; for a rule with many alerts, how many are in the state
	count   float64
	entered float64 // how often it was entered, in total
	spent   float64 // seconds spent in it, in total; 0 if unknown
}

// allStates returns the states of the entry, or nil if it has none.
func (e *entry) allStates() (states []stateStats) {
	of := func(f *metric) *stateStats {
		name := f.series.Values[e.naming()]
		n := slices.IndexFunc(states, func(s stateStats) bool { return s.name == name })
		if n < 0 {
			n, states = len(states), append(states, stateStats{name: name})
		}
		return &states[n]
	}
	for _, f := range e.metrics {
		switch f.series.Instrument {
		case instrument.BreakerState, instrument.AlertState:
			of(f).count = f.last
		case instrument.BreakerTransitions, instrument.AlertTransitions:
			of(f).entered = f.last
		case instrument.BreakerStateTime:
			of(f).spent = f.last
		}
	}
	return states
}

// stateSeverity ranks states. A higher one is worse.
func stateSeverity(state string) int {
	switch state {
	case "firing", "open", "forced_open":
		return 3
	case "pending", "half_open", "recovering":
		return 2
	case "inactive", "closed":
		return 0
	}
	return 1
}

// worstState returns the worst current state, or the zero value if there is none.
func worstState(states []stateStats) stateStats {
	var worst stateStats
	for _, s := range states {
		if s.count > 0 && (worst.name == "" || stateSeverity(s.name) > stateSeverity(worst.name)) {
			worst = s
		}
	}
	return worst
}
