package fleet

import "github.com/weir-go/weir/stat"

const (
	attrLimiter = "weir.limiter.name"
	attrWindow  = "weir.window.name"
	attrOutcome = "weir.window.outcome"
)

// The instruments of limiters and windows. They equal the instruments of the core module, which are
// internal there. A dashboard therefore shows limiters and windows of both alike.
var (
	limiterRequests = &stat.Instrument{
		Name: "weir.limiter.requests", Unit: "{request}", Kind: stat.Counter, Attrs: []string{attrLimiter, "weir.limiter.outcome"},
		Help: "Requests for tokens or slots, by outcome.",
	}
	limiterTokens = &stat.Instrument{
		Name: "weir.limiter.tokens", Unit: "{token}", Kind: stat.Counter, Attrs: []string{attrLimiter, "weir.limiter.outcome"},
		Help: "Tokens asked for, by outcome of the request.",
	}
	limiterWaiting = &stat.Instrument{
		Name: "weir.limiter.waiting", Unit: "{request}", Kind: stat.UpDown, Attrs: []string{attrLimiter},
		Help: "Requests that are waiting for tokens or slots.",
	}
	limiterQueueFull = &stat.Instrument{
		Name: "weir.limiter.queue_full", Unit: "{request}", Kind: stat.Counter, Attrs: []string{attrLimiter},
		Help: "Refused requests that would have waited, but as many waited as may. Absent until there is one.",
	}
	limiterNoRoom = &stat.Instrument{
		Name: "weir.limiter.no_room", Unit: "{request}", Kind: stat.Counter, Attrs: []string{attrLimiter},
		Help: "Requests and holds of keys that had no room, because MaxKeys keys were in use.",
	}
	limiterLimit = &stat.Instrument{
		Name: "weir.limiter.limit", Unit: "{token}", Kind: stat.Gauge, Attrs: []string{attrLimiter},
		Help: "Most tokens that can be taken at once.",
	}
	limiterBackendErrors = &stat.Instrument{
		Name: "weir.limiter.backend.errors", Unit: "{error}", Kind: stat.Counter, Attrs: []string{attrLimiter, "error.type"},
		Help: "Decisions without an answer from the limiter's store, by kind of error.",
	}
	windowEvents = &stat.Instrument{
		Name: "weir.window.events", Unit: "{event}", Kind: stat.Counter, Attrs: []string{attrWindow, attrOutcome},
		Help: "Events counted, by outcome.",
	}
	windowEventsLate = &stat.Instrument{
		Name: "weir.window.late_events", Unit: "{event}", Kind: stat.Counter, Attrs: []string{attrWindow},
		Help: "Events that came too late for their bucket. A window in the process counts them into its newest bucket; the window of a fleet leaves them out.",
	}
	windowErrorRatio = &stat.Instrument{
		Name: "weir.window.error_ratio", Unit: "1", Kind: stat.Gauge, Attrs: []string{attrWindow},
		Help: "Failed share of the events in the window. Absent without events.",
	}
	windowSize = &stat.Instrument{
		Name: "weir.window.size", Unit: "{event}", Kind: stat.Gauge, Attrs: []string{attrWindow},
		Help: "Events in the window.",
	}
	windowLength = &stat.Instrument{
		Name: "weir.window.length", Unit: "s", Kind: stat.Gauge, Attrs: []string{attrWindow},
		Help: "Length of the window.",
	}
	windowFlushes = &stat.Instrument{
		Name: "weir.window.flushes", Unit: "{flush}", Kind: stat.Counter, Attrs: []string{attrWindow, attrOutcome},
		Help: "Exchanges of a window with the other processes of a fleet, by outcome.",
	}
	windowLag = &stat.Instrument{
		Name: "weir.window.lag", Unit: "s", Kind: stat.Gauge, Attrs: []string{attrWindow},
		Help: "Age of the counts from the other processes of a fleet.",
	}
)
