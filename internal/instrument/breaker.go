package instrument

const (
	breakerName    = "weir.breaker.name"
	breakerState   = "weir.breaker.state"
	breakerOutcome = "weir.breaker.outcome"
	groupKey       = "weir.group.key"
)

// Instruments of circuit breakers.
var (
	BreakerState = upDown("weir.breaker.state", "{breaker}",
		"1 for the current state of the breaker, 0 for the other states.", breakerName, breakerState, groupKey)
	BreakerTransitions = counter("weir.breaker.transitions", "{transition}",
		"State transitions, by the state entered.", breakerName, breakerState, groupKey)
	BreakerStateTime = counter("weir.breaker.state_time", "s",
		"Time spent in each state.", breakerName, breakerState, groupKey)
	BreakerCalls = counter("weir.breaker.calls", "{call}",
		"Calls, by outcome.", breakerName, breakerOutcome, groupKey)
	BreakerSlowCalls = counter("weir.breaker.slow_calls", "{call}",
		"Calls that took longer than the breaker's limit for slow calls.", breakerName, groupKey)
	BreakerLateResults = counter("weir.breaker.late_results", "{result}",
		"Results of calls that were allowed in an earlier state, which do not count.", breakerName, groupKey)
	BreakerAbandonedProbes = counter("weir.breaker.abandoned_probes", "{probe}",
		"Probes that reported no result within the probe timeout.", breakerName, groupKey)
	BreakerDroppedChanges = counter("weir.breaker.dropped_changes", "{change}",
		"State changes that no callback received, because its queue was full or it panicked.", breakerName, groupKey)
	BreakerWindowFailureRatio = gauge("weir.breaker.window.failure_ratio", "1",
		"Failed share of the calls in the window. Absent below the minimum of calls.", breakerName, groupKey)
	BreakerWindowSlowRatio = gauge("weir.breaker.window.slow_ratio", "1",
		"Slow share of the calls in the window. Absent below the minimum of calls.", breakerName, groupKey)
	BreakerWindowCalls = gauge("weir.breaker.window.calls", "{call}",
		"Calls in the window, by outcome.", breakerName, breakerOutcome, groupKey)
	BreakerThresholdFailureRatio = gauge("weir.breaker.threshold.failure_ratio", "1",
		"Failure ratio at which the breaker opens.", breakerName, groupKey)
	BreakerThresholdMinCalls = gauge("weir.breaker.threshold.min_calls", "{call}",
		"Minimum of calls in the window for the breaker to open by a ratio.", breakerName, groupKey)
	BreakerOpenRemaining = gauge("weir.breaker.open.remaining", "s",
		"Time until an open breaker allows a probe. Absent in other states.", breakerName, groupKey)
	BreakerCallDuration = durations("weir.breaker.call.duration",
		"Duration of calls.", callBounds, breakerName, groupKey)
	BreakerRefusalRatio = gauge("weir.breaker.refusal_ratio", "1",
		"Probability with which a throttle refuses a call.", breakerName, groupKey)
	BreakerGroupMembers = upDown("weir.breaker.group.size", "{breaker}",
		"Members of a group of breakers.", breakerName)
	BreakerGroupEvictions = counter("weir.breaker.group.evictions", "{breaker}",
		"Idle members that a group evicted to make room.", breakerName)
	BreakerGroupUnguarded = counter("weir.breaker.group.unguarded", "{breaker}",
		"Requests for a member that a full group answered with a breaker that allows every call.", breakerName)
	BreakerGroupPrevented = counter("weir.breaker.group.prevented_openings", "{opening}",
		"Openings that the largest share of open members prevented.", breakerName)
)
