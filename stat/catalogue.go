package stat

import (
	"math"
	"slices"
)

// Keys of the attribute that names a source.
const (
	attrBreaker = "weir.breaker.name"
	attrGroup   = "weir.group.key" // "" for a breaker of no group
	attrLimiter = "weir.limiter.name"
	attrRule    = "weir.alert.rule"
	attrSink    = "weir.notifier.name"
	attrWindow  = "weir.window.name"
)

// Instruments of circuit breakers.
var (
	BreakerState = &Instrument{
		Name: "weir.breaker.state", Unit: "{breaker}", Kind: UpDown, Attrs: []string{attrBreaker, "weir.breaker.state", attrGroup},
		Help: "1 for the state the breaker is in, 0 for the others.",
	}
	BreakerTransitions = &Instrument{
		Name: "weir.breaker.transitions", Unit: "{transition}", Kind: Counter, Attrs: []string{attrBreaker, "weir.breaker.state", attrGroup},
		Help: "Transitions, by the state entered.",
	}
	BreakerStateTime = &Instrument{
		Name: "weir.breaker.state.time", Unit: "s", Kind: Counter, Attrs: []string{attrBreaker, "weir.breaker.state", attrGroup},
		Help: "Time spent in each state.",
	}
	BreakerCalls = &Instrument{
		Name: "weir.breaker.calls", Unit: "{call}", Kind: Counter, Attrs: []string{attrBreaker, "weir.breaker.outcome", attrGroup},
		Help: "Calls, by outcome.",
	}
	BreakerSlowCalls = &Instrument{
		Name: "weir.breaker.slow_calls", Unit: "{call}", Kind: Counter, Attrs: []string{attrBreaker, attrGroup},
		Help: "Calls that took longer than the breaker's limit for slow calls.",
	}
	BreakerLateResults = &Instrument{
		Name: "weir.breaker.late_results", Unit: "{result}", Kind: Counter, Attrs: []string{attrBreaker, attrGroup},
		Help: "Results of calls that a state before the present one had let through.",
	}
	BreakerAbandonedProbes = &Instrument{
		Name: "weir.breaker.abandoned_probes", Unit: "{probe}", Kind: Counter, Attrs: []string{attrBreaker, attrGroup},
		Help: "Probes that were unheard of for the probe timeout.",
	}
	BreakerDroppedChanges = &Instrument{
		Name: "weir.breaker.dropped_changes", Unit: "{change}", Kind: Counter, Attrs: []string{attrBreaker, attrGroup},
		Help: "State changes that no callback saw, because too many were waiting or the callback panicked.",
	}
	BreakerWindowFailureRatio = &Instrument{
		Name: "weir.breaker.window.failure_ratio", Unit: "1", Kind: Gauge, Attrs: []string{attrBreaker, attrGroup},
		Help: "Failures of calls in the window, where there are enough calls to judge.",
	}
	BreakerWindowSlowRatio = &Instrument{
		Name: "weir.breaker.window.slow_ratio", Unit: "1", Kind: Gauge, Attrs: []string{attrBreaker, attrGroup},
		Help: "Slow calls of calls in the window, where there are enough calls to judge.",
	}
	BreakerWindowCalls = &Instrument{
		Name: "weir.breaker.window.calls", Unit: "{call}", Kind: Gauge, Attrs: []string{attrBreaker, "weir.breaker.outcome", attrGroup},
		Help: "Calls in the window, by outcome.",
	}
	BreakerThresholdFailureRatio = &Instrument{
		Name: "weir.breaker.threshold.failure_ratio", Unit: "1", Kind: Gauge, Attrs: []string{attrBreaker, attrGroup},
		Help: "The failure ratio at which the breaker opens.",
	}
	BreakerThresholdMinCalls = &Instrument{
		Name: "weir.breaker.threshold.min_calls", Unit: "{call}", Kind: Gauge, Attrs: []string{attrBreaker, attrGroup},
		Help: "The calls in the window below which nothing is judged.",
	}
	BreakerOpenRemaining = &Instrument{
		Name: "weir.breaker.open.remaining", Unit: "s", Kind: Gauge, Attrs: []string{attrBreaker, attrGroup},
		Help: "Time until an open breaker tries again, where it is open.",
	}
	BreakerCallDuration = &Instrument{
		Name: "weir.breaker.call.duration", Unit: "s", Kind: Distribution, Attrs: []string{attrBreaker, attrGroup},
		Help: "How long calls took.", Bounds: powersOfTwo(-13, 6), // 122 µs to 64 s
	}
	BreakerCallActive = &Instrument{
		Name: "weir.breaker.call.active", Unit: "{call}", Kind: UpDown, Attrs: []string{attrBreaker, attrGroup},
		Help: "Calls in flight.",
	}
	BreakerRefusalRatio = &Instrument{
		Name: "weir.breaker.refusal_ratio", Unit: "1", Kind: Gauge, Attrs: []string{attrBreaker, attrGroup},
		Help: "The probability with which a throttle refuses a call.",
	}
	BreakerGroupMembers = &Instrument{
		Name: "weir.breaker.group.members", Unit: "{breaker}", Kind: UpDown, Attrs: []string{attrBreaker},
		Help: "Members of a group of breakers.",
	}
	BreakerGroupEvictions = &Instrument{
		Name: "weir.breaker.group.evictions", Unit: "{breaker}", Kind: Counter, Attrs: []string{attrBreaker},
		Help: "Idle members that a group has let go to make room.",
	}
	BreakerGroupUnguarded = &Instrument{
		Name: "weir.breaker.group.unguarded", Unit: "{breaker}", Kind: Counter, Attrs: []string{attrBreaker},
		Help: "Times that a group was full and gave out the breaker that lets all calls pass.",
	}
)

// Instruments of limiters.
var (
	LimiterRequests = &Instrument{
		Name: "weir.limiter.requests", Unit: "{request}", Kind: Counter, Attrs: []string{attrLimiter, "weir.limiter.outcome"},
		Help: "Requests for permits, by outcome.",
	}
	LimiterPermits = &Instrument{
		Name: "weir.limiter.permits", Unit: "{permit}", Kind: Counter, Attrs: []string{attrLimiter, "weir.limiter.outcome"},
		Help: "Permits asked for, by outcome of the request.",
	}
	LimiterNear = &Instrument{
		Name: "weir.limiter.near_limit", Unit: "{permit}", Kind: Counter, Attrs: []string{attrLimiter},
		Help: "Permits taken when most of the limit was used already.",
	}
	LimiterWaiting = &Instrument{
		Name: "weir.limiter.waiting", Unit: "{request}", Kind: UpDown, Attrs: []string{attrLimiter},
		Help: "Requests that wait for permits.",
	}
	LimiterAvailable = &Instrument{
		Name: "weir.limiter.available", Unit: "{permit}", Kind: Gauge, Attrs: []string{attrLimiter},
		Help: "Permits that could be taken now.",
	}
	LimiterLimit = &Instrument{
		Name: "weir.limiter.limit", Unit: "{permit}", Kind: Gauge, Attrs: []string{attrLimiter},
		Help: "The most permits that can be taken at once.",
	}
	LimiterPeriod = &Instrument{
		Name: "weir.limiter.period", Unit: "s", Kind: Gauge, Attrs: []string{attrLimiter},
		Help: "The time in which the limit comes anew.",
	}
	LimiterKeys = &Instrument{
		Name: "weir.limiter.keys", Unit: "{key}", Kind: UpDown, Attrs: []string{attrLimiter},
		Help: "Keys that a group of limiters remembers.",
	}
	LimiterEvictions = &Instrument{
		Name: "weir.limiter.evictions", Unit: "{key}", Kind: Counter, Attrs: []string{attrLimiter},
		Help: "Idle keys that a group of limiters has forgotten.",
	}
	LimiterBackendErrors = &Instrument{
		Name: "weir.limiter.backend.errors", Unit: "{error}", Kind: Counter, Attrs: []string{attrLimiter, "error.type"},
		Help: "Decisions for which the limiter's store gave no answer, by the kind of error.",
	}
	LimiterWaitDuration = &Instrument{
		Name: "weir.limiter.wait.duration", Unit: "s", Kind: Distribution, Attrs: []string{attrLimiter},
		Help: "How long requests waited that were admitted after a wait.", Bounds: powersOfTwo(-13, 6), // 122 µs to 64 s
	}
)

// Instruments of windows that stand alone.
var (
	WindowEvents = &Instrument{
		Name: "weir.window.events", Unit: "{event}", Kind: Counter, Attrs: []string{attrWindow, "weir.window.outcome"},
		Help: "Events counted, by outcome.",
	}
	WindowEventsLate = &Instrument{
		Name: "weir.window.events.late", Unit: "{event}", Kind: Counter, Attrs: []string{attrWindow},
		Help: "Events that were older than the newest part of the window, and were counted into it.",
	}
	WindowErrorRatio = &Instrument{
		Name: "weir.window.error_ratio", Unit: "1", Kind: Gauge, Attrs: []string{attrWindow},
		Help: "Failures of the events in the window, where there are any.",
	}
	WindowSize = &Instrument{
		Name: "weir.window.size", Unit: "{event}", Kind: Gauge, Attrs: []string{attrWindow},
		Help: "Events in the window.",
	}
	WindowLength = &Instrument{
		Name: "weir.window.length", Unit: "s", Kind: Gauge, Attrs: []string{attrWindow},
		Help: "The length of the window.",
	}
	WindowCoverage = &Instrument{
		Name: "weir.window.coverage", Unit: "1", Kind: Gauge, Attrs: []string{attrWindow},
		Help: "The part of the window's length that has been seen so far.",
	}
	WindowFlushes = &Instrument{
		Name: "weir.window.flushes", Unit: "{flush}", Kind: Counter, Attrs: []string{attrWindow, "weir.window.outcome"},
		Help: "Exchanges of a window with its fleet, by outcome.",
	}
	WindowLag = &Instrument{
		Name: "weir.window.lag", Unit: "s", Kind: Gauge, Attrs: []string{attrWindow},
		Help: "How old what is known of the fleet is.",
	}
	WindowLatency = &Instrument{
		Name: "weir.window.latency", Unit: "s", Kind: Gauge, Attrs: []string{attrWindow, "weir.window.quantile"},
		Help: "Quantiles of how long the events in the window took.",
	}
)

// Instruments of alert rules.
var (
	AlertState = &Instrument{
		Name: "weir.alert.state", Unit: "{alert}", Kind: UpDown, Attrs: []string{attrRule, "weir.alert.severity", "weir.alert.state"},
		Help: "1 for the state the rule is in, 0 for the others.",
	}
	AlertTransitions = &Instrument{
		Name: "weir.alert.transitions", Unit: "{transition}", Kind: Counter, Attrs: []string{attrRule, "weir.alert.severity", "weir.alert.state"},
		Help: "Transitions, by the state entered.",
	}
	AlertValue = &Instrument{
		Name: "weir.alert.value", Kind: Gauge, Attrs: []string{attrRule, "weir.alert.severity"},
		Help: "The value at the last evaluation, where there was one.",
	}
	AlertEvaluations = &Instrument{
		Name: "weir.alert.evaluations", Unit: "{evaluation}", Kind: Counter, Attrs: []string{attrRule, "weir.alert.severity", "error.type"},
		Help: "Evaluations of the rule, by the kind of error where there was one.",
	}
	AlertLastEvaluation = &Instrument{
		Name: "weir.alert.last_evaluation.timestamp", Unit: "s", Kind: Gauge, Attrs: []string{attrRule, "weir.alert.severity"},
		Help: "Unix time of the last evaluation.",
	}
	AlertEvaluationDuration = &Instrument{
		Name: "weir.alert.evaluation.duration", Unit: "s", Kind: Distribution, Attrs: []string{attrRule, "weir.alert.severity"},
		Help: "How long evaluations of the rule took.", Bounds: powersOfTwo(-17, 4), // 8 µs to 16 s
	}
)

// Instruments of notifiers.
var (
	NotifierNotifications = &Instrument{
		Name: "weir.notifier.notifications", Unit: "{notification}", Kind: Counter, Attrs: []string{attrSink, "weir.notifier.outcome", "error.type"},
		Help: "Notifications, by what became of them.",
	}
	NotifierAttempts = &Instrument{
		Name: "weir.notifier.attempts", Unit: "{attempt}", Kind: Counter, Attrs: []string{attrSink},
		Help: "Attempts at delivery.",
	}
	NotifierPending = &Instrument{
		Name: "weir.notifier.pending", Unit: "{notification}", Kind: UpDown, Attrs: []string{attrSink},
		Help: "Notifications that wait to be delivered.",
	}
	NotifierPendingLimit = &Instrument{
		Name: "weir.notifier.pending.limit", Unit: "{notification}", Kind: UpDown, Attrs: []string{attrSink},
		Help: "The most notifications that may wait.",
	}
	NotifierLastSuccess = &Instrument{
		Name: "weir.notifier.last_success.timestamp", Unit: "s", Kind: Gauge, Attrs: []string{attrSink},
		Help: "Unix time of the last delivery.",
	}
	NotifierDeliveryDuration = &Instrument{
		Name: "weir.notifier.delivery.duration", Unit: "s", Kind: Distribution, Attrs: []string{attrSink},
		Help: "How long attempts at delivery took.", Bounds: powersOfTwo(-10, 6), // 1 ms to 64 s
	}
)

// Instruments of exporters.
var (
	ExporterSourcePanics = &Instrument{
		Name: "weir.exporter.source_panics", Unit: "{panic}", Kind: Counter,
		Help: "Panics of sources that were being read.",
	}
	ExporterSkippedSamples = &Instrument{
		Name: "weir.exporter.skipped_samples", Unit: "{sample}", Kind: Counter, Attrs: []string{"weir.exporter.reason"},
		Help: "Samples that were left out, by what is wrong with their series.",
	}
)

// Catalogue lists every instrument of the library, in a fixed order: what an
// exporter may describe before the first source exists. The caller owns the list,
// not the instruments.
func Catalogue() []*Instrument {
	return slices.Concat(
		[]*Instrument{
			BreakerState, BreakerTransitions, BreakerStateTime, BreakerCalls, BreakerSlowCalls, BreakerLateResults,
			BreakerAbandonedProbes, BreakerDroppedChanges, BreakerWindowFailureRatio, BreakerWindowSlowRatio,
			BreakerWindowCalls, BreakerThresholdFailureRatio, BreakerThresholdMinCalls, BreakerOpenRemaining, BreakerCallDuration,
			BreakerCallActive, BreakerRefusalRatio, BreakerGroupMembers, BreakerGroupEvictions, BreakerGroupUnguarded,
		},
		[]*Instrument{
			LimiterRequests, LimiterPermits, LimiterNear, LimiterWaiting, LimiterAvailable, LimiterLimit,
			LimiterPeriod, LimiterKeys, LimiterEvictions, LimiterBackendErrors, LimiterWaitDuration,
		},
		[]*Instrument{WindowEvents, WindowEventsLate, WindowErrorRatio, WindowSize, WindowLength, WindowCoverage, WindowLatency, WindowFlushes, WindowLag},
		[]*Instrument{AlertState, AlertTransitions, AlertValue, AlertEvaluations, AlertEvaluationDuration, AlertLastEvaluation},
		[]*Instrument{
			NotifierNotifications, NotifierAttempts, NotifierDeliveryDuration, NotifierPending, NotifierPendingLimit, NotifierLastSuccess,
		},
		[]*Instrument{ExporterSourcePanics, ExporterSkippedSamples},
	)
}

// powersOfTwo lists the powers of two with these exponents and those between.
func powersOfTwo(first, last int) (list []float64) {
	for exp := first; exp <= last; exp++ {
		list = append(list, math.Ldexp(1, exp))
	}
	return list
}
