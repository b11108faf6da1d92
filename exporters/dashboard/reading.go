package dashboard

import (
	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/stat"
)

// reading is what the figures of one line say at one sample.
type reading struct {
	breaker, limiter bool // there are figures of one

	stages    []stage
	calls     totals
	admitted  float64 // by the limiter
	good, bad float64 // calls in the breaker's window
	threshold number  // the failure rate at which the breaker opens
	reopens   number  // seconds until an open breaker tries again
	waiting   float64
	available number
	limit     number

	value     number  // of an alert
	evaluated float64 // Unix time in seconds; 0 for never
	failed    float64 // evaluations of an alert

	delivered, failures, lost, pending float64 // notifications
	delivery                           float64 // Unix time of the last one
}

// totals are calls since their source was made. They only grow.
type totals struct {
	passed  float64 // let through
	failed  float64 // of these, those that failed
	refused float64
}

// stage is a state that a breaker or an alert can be in.
type stage struct {
	name    string
	is      float64 // 1 for the present one; of a rule over many alerts, how many are in it
	entered float64 // how often, ever
	spent   float64 // seconds in it, ever; 0 where nobody counts them
}

// add takes in one figure. What is not named here stands in the list of figures alone.
func (r *reading) add(s *stat.Series, value float64) {
	switch s.Instrument {
	case instrument.BreakerState, instrument.AlertState:
		r.stage(s).is = value
	case instrument.BreakerTransitions, instrument.AlertTransitions:
		r.stage(s).entered = value
	case instrument.BreakerStateTime:
		r.stage(s).spent = value
	case instrument.BreakerCalls:
		r.breaker = true
		r.addCalls(s.Values[1], value)
	case instrument.BreakerWindowCalls:
		r.addWindow(s.Values[1], value)
	case instrument.BreakerThresholdFailureRatio:
		r.threshold = some(value)
	case instrument.BreakerOpenRemaining:
		r.reopens = some(value)
	case instrument.LimiterRequests:
		r.addRequests(s.Values[1], value)
	case instrument.LimiterWaiting:
		r.waiting = value
	case instrument.LimiterAvailable:
		r.available = exact(value)
	case instrument.LimiterLimit:
		r.limit = exact(value)
	case instrument.AlertValue:
		r.value = some(value)
	case instrument.AlertLastEvaluation:
		r.evaluated = value
	case instrument.AlertEvaluations:
		if s.Values[2] != "" {
			r.failed += value
		}
	case instrument.NotifierNotifications:
		r.addNotifications(s.Values[1], value)
	case instrument.NotifierPending:
		r.pending = value
	case instrument.NotifierLastSuccess:
		r.delivery = value
	}
}

// stage returns the state that is an attribute of the series.
func (r *reading) stage(s *stat.Series) *stage {
	name := attribute(s, ".state")
	for n := range r.stages {
		if r.stages[n].name == name {
			return &r.stages[n]
		}
	}
	r.stages = append(r.stages, stage{name: name})
	return &r.stages[len(r.stages)-1]
}

func (r *reading) addCalls(outcome string, n float64) {
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

func (r *reading) addWindow(outcome string, n float64) {
	switch outcome {
	case "success":
		r.good = n
	case "failure":
		r.bad = n
	}
}

// addRequests counts what a limiter let through only where no breaker counts the
// same calls behind it.
func (r *reading) addRequests(outcome string, n float64) {
	r.limiter = true
	switch outcome {
	case "allowed", "waited", "shadowed":
		r.admitted += n
	case "refused":
		r.calls.refused += n
	}
}

func (r *reading) addNotifications(outcome string, n float64) {
	switch outcome {
	case "delivered":
		r.delivered += n
	case "failed":
		r.failures += n
	case "dropped":
		r.lost += n
	}
}

// count is the totals of the line: what its breaker let through, or else its limiter.
func (r *reading) count() totals {
	c := r.calls
	if !r.breaker {
		c.passed = r.admitted
	}
	return c
}

func (r *reading) failureRate() number { return share(r.bad, r.good+r.bad) }

// kind says what a line of calls is.
func (r *reading) kind() string {
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

// severity orders states: the worst one that holds is what a line is in.
func severity(state string) int {
	switch state {
	case "firing", "open", "forced_open":
		return 3
	case "pending", "half_open":
		return 2
	case "inactive", "closed":
		return 0
	}
	return 1
}

// state returns the worst of the states that hold, "" if there is none.
func (r *reading) state() stage {
	var worst stage
	for _, s := range r.stages {
		if s.is > 0 && (worst.name == "" || severity(s.name) > severity(worst.name)) {
			worst = s
		}
	}
	return worst
}
