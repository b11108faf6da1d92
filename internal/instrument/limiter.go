package instrument

const (
	limiterName    = "weir.limiter.name"
	limiterOutcome = "weir.limiter.outcome"
)

// Instruments of limiters, and of bounds on calls in flight.
var (
	LimiterRequests = counter("weir.limiter.requests", "{request}",
		"Requests for tokens or slots, by outcome.", limiterName, limiterOutcome)
	LimiterTokens = counter("weir.limiter.tokens", "{token}",
		"Tokens asked for, by outcome of the request.", limiterName, limiterOutcome)
	LimiterNear = counter("weir.limiter.near_limit", "{token}",
		"Tokens taken while most of the limit was in use.", limiterName)
	LimiterWaiting = upDown("weir.limiter.waiting", "{request}",
		"Requests that are waiting for tokens or slots.", limiterName)
	LimiterQueueFull = counter("weir.limiter.queue_full", "{request}",
		"Refused requests that would have waited, but as many waited as may. Absent until there is one.", limiterName)
	LimiterAvailable = gauge("weir.limiter.available", "{token}",
		"Tokens that can be taken now.", limiterName)
	LimiterLimit = gauge("weir.limiter.limit", "{token}",
		"Most tokens that can be taken at once.", limiterName)
	InFlightCalls = upDown("weir.inflight.call.active", "{call}",
		"Calls in flight.", limiterName)
	InFlightLimit = gauge("weir.inflight.limit", "{call}",
		"Most calls in flight at once. Of a group, the lowest bound of a key.", limiterName)
	InFlightBounding = gauge("weir.inflight.bounding.time", "s",
		"How long an adaptive bound has bounded the calls, by its evidence of congestion: slow calls, "+
			"overloaded (the service says so), late failures or silence. Absent while it refuses nothing.",
		limiterName, "weir.inflight.evidence")
	GateHopelessCalls = counter("weir.gate.hopeless_calls", "{call}",
		"Calls that were refused because a success before their deadline was improbable.", limiterName)
	RetryCalls = counter("weir.retry.calls", "{call}",
		"Calls of a retry budget: first calls, retries and hedges, and those that were refused.", limiterName, "weir.retry.kind")
	LimiterPeriod = gauge("weir.limiter.period", "s",
		"Time in which a used-up limit becomes available again.", limiterName)
	LimiterKeys = upDown("weir.limiter.group.size", "{key}",
		"Keys that a group of limiters remembers.", limiterName)
	LimiterNoRoom = counter("weir.limiter.no_room", "{request}",
		"Requests and holds of keys that had no room, because MaxKeys keys were in use.", limiterName)
	LimiterEvictions = counter("weir.limiter.evictions", "{key}",
		"Idle keys that a group of limiters evicted.", limiterName)
	LimiterBackendErrors = counter("weir.limiter.backend.errors", "{error}",
		"Decisions without an answer from the limiter's store, by kind of error.", limiterName, "error.type")
	LimiterWaitDuration = durations("weir.limiter.wait.duration",
		"Time that requests waited before they were allowed.", callBounds, limiterName)
)
