package dashboard

import (
	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/stat"
)

// sample holds the metrics of one entry at one moment.
type sample struct {
	breaker, limiter bool // whether the entry has metrics of one

	states                          []stateStats
	calls                           totals
	allowed                         float64 // by the limiter
	limitRefused                    float64 // by the limiter, and not by the breaker
	windowSuccesses, windowFailures float64 // in the breaker's window
	threshold                       number  // the failure rate at which the breaker opens
	reopensIn                       number  // seconds until an open breaker becomes half-open
	waiting                         float64
	unguarded, noRoom               float64 // calls and requests of keys that found a full table
	available                       number
	limit                           number
	period                          number // seconds to which the limit refers
	inFlight, inFlightLimit         number

	value             number  // of an alert
	lastEvaluation    float64 // Unix time in seconds; 0 for never
	failedEvaluations float64 // of an alert's rule

	delivered, failedAttempts, dropped, pending float64 // notifications
	lastDelivery                                float64 // Unix time in seconds
}

// totals are lifetime counts of calls. They only grow.
type totals struct {
	passed  float64 // allowed
	failed  float64 // of those passed
	refused float64
}

// stateStats is a state of a breaker or an alert, and how often it occurred.
type stateStats struct {
	name string
	// 1 for the current state; for a rule with many alerts, how many are in the state
	count   float64
	entered float64 // how often it was entered, in total
	spent   float64 // seconds spent in it, in total; 0 if unknown
}

// add adds one metric. All others appear only in the list of metrics of the source view.
func (r *sample) add(s *stat.Series, value float64) {
	switch s.Instrument {
	case instrument.BreakerState, instrument.AlertState:
		r.statsOf(s).count = value
	case instrument.BreakerTransitions, instrument.AlertTransitions:
		r.statsOf(s).entered = value
	case instrument.BreakerStateTime:
		r.statsOf(s).spent = value
	case instrument.BreakerCalls:
		r.breaker = true
		r.addCalls(s.Values[1], value)
	case instrument.BreakerWindowCalls:
		r.addWindow(s.Values[1], value)
	case instrument.BreakerThresholdFailureRatio:
		r.threshold = roundedNumber(value)
	case instrument.BreakerOpenRemaining:
		r.reopensIn = roundedNumber(value)
	case instrument.BreakerGroupUnguarded:
		r.unguarded = value
	case instrument.LimiterNoRoom:
		r.noRoom = value
	case instrument.LimiterRequests:
		r.addRequests(s.Values[1], value)
	case instrument.LimiterWaiting:
		r.waiting = value
	case instrument.LimiterAvailable:
		r.available = exactNumber(value)
	case instrument.LimiterLimit:
		r.limit = exactNumber(value)
	case instrument.LimiterPeriod:
		r.period = exactNumber(value)
	case instrument.InFlightCalls:
		r.inFlight = exactNumber(value)
	case instrument.InFlightLimit:
		r.inFlightLimit = exactNumber(value)
	case instrument.AlertValue:
		r.value = roundedNumber(value)
	case instrument.AlertLastEvaluation:
		r.lastEvaluation = value
	case instrument.AlertEvaluations:
		if s.Values[2] != "" {
			r.failedEvaluations += value
		}
	case instrument.NotifierNotifications:
		r.addNotifications(s.Values[1], value)
	case instrument.NotifierPending:
		r.pending = value
	case instrument.NotifierLastSuccess:
		r.lastDelivery = value
	}
}

// statsOf returns the stats of the state in the series' attributes.
func (r *sample) statsOf(s *stat.Series) *stateStats {
	name := attribute(s, ".state")
	for n := range r.states {
		if r.states[n].name == name {
			return &r.states[n]
		}
	}
	r.states = append(r.states, stateStats{name: name})
	return &r.states[len(r.states)-1]
}

func (r *sample) addCalls(outcome string, n float64) {
	switch outcome {
	case "failure":
		r.calls.passed += n
		r.calls.failed += n
	case "success", "ignored":
		r.calls.passed += n
	case "refused":
		r.calls.refused += n
	}
}

func (r *sample) addWindow(outcome string, n float64) {
	switch outcome {
	case "success":
		r.windowSuccesses = n
	case "failure":
		r.windowFailures = n
	}
}

// addRequests counts the calls that a limiter allowed apart from those of a breaker, because in a
// gate both count the same calls.
func (r *sample) addRequests(outcome string, n float64) {
	r.limiter = true
	switch outcome {
	case "allowed", "waited", "shadowed":
		r.allowed += n
	case "refused":
		r.calls.refused += n
		r.limitRefused += n
	}
}

func (r *sample) addNotifications(outcome string, n float64) {
	switch outcome {
	case "delivered":
		r.delivered += n
	case "failed":
		r.failedAttempts += n
	case "dropped":
		r.dropped += n
	}
}

// totals returns the counts of the breaker, or of the limiter if there is no breaker.
func (r *sample) totals() totals {
	c := r.calls
	if !r.breaker {
		c.passed = r.allowed
	}
	return c
}

func (r *sample) failureRate() number {
	return ratio(r.windowFailures, r.windowSuccesses+r.windowFailures)
}

// kind returns what an entry with calls is.
func (r *sample) kind() string {
	switch {
	case r.breaker && r.limiter:
		return "gate"
	case r.breaker:
		return "breaker"
	case r.limiter:
		return "limiter"
	}
	return ""
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

// state returns the worst current state, or the zero value if there is none.
func (r *sample) state() stateStats {
	var worst stateStats
	for _, s := range r.states {
		if s.count > 0 && (worst.name == "" || stateSeverity(s.name) > stateSeverity(worst.name)) {
			worst = s
		}
	}
	return worst
}
