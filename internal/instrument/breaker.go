package instrument

import "github.com/weir-go/weir/stat"

const (
	attrBreaker = "weir.breaker.name"
	attrGroup   = "weir.group.key"
)

// Instruments of circuit breakers.
var (
	BreakerState = &stat.Instrument{
		Name: "weir.breaker.state", Unit: "{breaker}", Kind: stat.UpDown, Attrs: []string{attrBreaker, "weir.breaker.state", attrGroup},
		Help: "1 for the state the breaker is in, 0 for the others.",
	}
	BreakerTransitions = &stat.Instrument{
		Name: "weir.breaker.transitions", Unit: "{transition}", Kind: stat.Counter, Attrs: []string{attrBreaker, "weir.breaker.state", attrGroup},
		Help: "Transitions, by the state entered.",
	}
	BreakerStateTime = &stat.Instrument{
		Name: "weir.breaker.state.time", Unit: "s", Kind: stat.Counter, Attrs: []string{attrBreaker, "weir.breaker.state", attrGroup},
		Help: "Time spent in each state.",
	}
	BreakerCalls = &stat.Instrument{
		Name: "weir.breaker.calls", Unit: "{call}", Kind: stat.Counter, Attrs: []string{attrBreaker, "weir.breaker.outcome", attrGroup},
		Help: "Calls, by outcome.",
	}
	BreakerSlowCalls = &stat.Instrument{
		Name: "weir.breaker.slow_calls", Unit: "{call}", Kind: stat.Counter, Attrs: []string{attrBreaker, attrGroup},
		Help: "Calls that took longer than the breaker's limit for slow calls.",
	}
	BreakerLateResults = &stat.Instrument{
		Name: "weir.breaker.late_results", Unit: "{result}", Kind: stat.Counter, Attrs: []string{attrBreaker, attrGroup},
		Help: "Results of calls that a state before the present one had let through.",
	}
	BreakerAbandonedProbes = &stat.Instrument{
		Name: "weir.breaker.abandoned_probes", Unit: "{probe}", Kind: stat.Counter, Attrs: []string{attrBreaker, attrGroup},
		Help: "Probes that were unheard of for the probe timeout.",
	}
	BreakerDroppedChanges = &stat.Instrument{
		Name: "weir.breaker.dropped_changes", Unit: "{change}", Kind: stat.Counter, Attrs: []string{attrBreaker, attrGroup},
		Help: "State changes that no callback saw, because too many were waiting or the callback panicked.",
	}
	BreakerWindowFailureRatio = &stat.Instrument{
		Name: "weir.breaker.window.failure_ratio", Unit: "1", Kind: stat.Gauge, Attrs: []string{attrBreaker, attrGroup},
		Help: "Failures of calls in the window, where there are enough calls to judge.",
	}
	BreakerWindowSlowRatio = &stat.Instrument{
		Name: "weir.breaker.window.slow_ratio", Unit: "1", Kind: stat.Gauge, Attrs: []string{attrBreaker, attrGroup},
		Help: "Slow calls of calls in the window, where there are enough calls to judge.",
	}
	BreakerWindowCalls = &stat.Instrument{
		Name: "weir.breaker.window.calls", Unit: "{call}", Kind: stat.Gauge, Attrs: []string{attrBreaker, "weir.breaker.outcome", attrGroup},
		Help: "Calls in the window, by outcome.",
	}
	BreakerThresholdFailureRatio = &stat.Instrument{
		Name: "weir.breaker.threshold.failure_ratio", Unit: "1", Kind: stat.Gauge, Attrs: []string{attrBreaker, attrGroup},
		Help: "The failure ratio at which the breaker opens.",
	}
	BreakerThresholdMinCalls = &stat.Instrument{
		Name: "weir.breaker.threshold.min_calls", Unit: "{call}", Kind: stat.Gauge, Attrs: []string{attrBreaker, attrGroup},
		Help: "The calls in the window below which nothing is judged.",
	}
	BreakerOpenRemaining = &stat.Instrument{
		Name: "weir.breaker.open.remaining", Unit: "s", Kind: stat.Gauge, Attrs: []string{attrBreaker, attrGroup},
		Help: "Time until an open breaker tries again, where it is open.",
	}
	BreakerCallDuration = &stat.Instrument{
		Name: "weir.breaker.call.duration", Unit: "s", Kind: stat.Distribution, Attrs: []string{attrBreaker, attrGroup},
		Help: "How long calls took.", Bounds: powersOfTwo(-13, 6), // 122 µs to 64 s
	}
	BreakerCallActive = &stat.Instrument{
		Name: "weir.breaker.call.active", Unit: "{call}", Kind: stat.UpDown, Attrs: []string{attrBreaker, attrGroup},
		Help: "Calls in flight.",
	}
	BreakerRefusalRatio = &stat.Instrument{
		Name: "weir.breaker.refusal_ratio", Unit: "1", Kind: stat.Gauge, Attrs: []string{attrBreaker, attrGroup},
		Help: "The probability with which a throttle refuses a call.",
	}
	BreakerGroupMembers = &stat.Instrument{
		Name: "weir.breaker.group.members", Unit: "{breaker}", Kind: stat.UpDown, Attrs: []string{attrBreaker},
		Help: "Members of a group of breakers.",
	}
	BreakerGroupEvictions = &stat.Instrument{
		Name: "weir.breaker.group.evictions", Unit: "{breaker}", Kind: stat.Counter, Attrs: []string{attrBreaker},
		Help: "Idle members that a group has let go to make room.",
	}
	BreakerGroupUnguarded = &stat.Instrument{
		Name: "weir.breaker.group.unguarded", Unit: "{breaker}", Kind: stat.Counter, Attrs: []string{attrBreaker},
		Help: "Times that a group was full and gave out the breaker that lets all calls pass.",
	}
)

// breakers lists them in the order of docs/metrics.md.
var breakers = []*stat.Instrument{
	BreakerState, BreakerTransitions, BreakerStateTime, BreakerCalls, BreakerSlowCalls, BreakerLateResults,
	BreakerAbandonedProbes, BreakerDroppedChanges, BreakerWindowFailureRatio, BreakerWindowSlowRatio,
	BreakerWindowCalls, BreakerThresholdFailureRatio, BreakerThresholdMinCalls, BreakerOpenRemaining, BreakerCallDuration,
	BreakerCallActive, BreakerRefusalRatio, BreakerGroupMembers, BreakerGroupEvictions, BreakerGroupUnguarded,
}
