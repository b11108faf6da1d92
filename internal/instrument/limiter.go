package instrument

import "github.com/weir-go/weir/stat"

const attrLimiter = "weir.limiter.name"

// Instruments of limiters.
var (
	LimiterRequests = &stat.Instrument{
		Name: "weir.limiter.requests", Unit: "{request}", Kind: stat.Counter, Attrs: []string{attrLimiter, "weir.limiter.outcome"},
		Help: "Requests for permits, by outcome.",
	}
	LimiterPermits = &stat.Instrument{
		Name: "weir.limiter.permits", Unit: "{permit}", Kind: stat.Counter, Attrs: []string{attrLimiter, "weir.limiter.outcome"},
		Help: "Permits asked for, by outcome of the request.",
	}
	LimiterNear = &stat.Instrument{
		Name: "weir.limiter.near_limit", Unit: "{permit}", Kind: stat.Counter, Attrs: []string{attrLimiter},
		Help: "Permits taken when most of the limit was used already.",
	}
	LimiterWaiting = &stat.Instrument{
		Name: "weir.limiter.waiting", Unit: "{request}", Kind: stat.UpDown, Attrs: []string{attrLimiter},
		Help: "Requests that wait for permits.",
	}
	LimiterAvailable = &stat.Instrument{
		Name: "weir.limiter.available", Unit: "{permit}", Kind: stat.Gauge, Attrs: []string{attrLimiter},
		Help: "Permits that could be taken now.",
	}
	LimiterLimit = &stat.Instrument{
		Name: "weir.limiter.limit", Unit: "{permit}", Kind: stat.Gauge, Attrs: []string{attrLimiter},
		Help: "The most permits that can be taken at once.",
	}
	LimiterPeriod = &stat.Instrument{
		Name: "weir.limiter.period", Unit: "s", Kind: stat.Gauge, Attrs: []string{attrLimiter},
		Help: "The time in which the limit comes anew.",
	}
	LimiterKeys = &stat.Instrument{
		Name: "weir.limiter.keys", Unit: "{key}", Kind: stat.UpDown, Attrs: []string{attrLimiter},
		Help: "Keys that a group of limiters remembers.",
	}
	LimiterEvictions = &stat.Instrument{
		Name: "weir.limiter.evictions", Unit: "{key}", Kind: stat.Counter, Attrs: []string{attrLimiter},
		Help: "Idle keys that a group of limiters has forgotten.",
	}
	LimiterBackendErrors = &stat.Instrument{
		Name: "weir.limiter.backend.errors", Unit: "{error}", Kind: stat.Counter, Attrs: []string{attrLimiter, "error.type"},
		Help: "Decisions for which the limiter's store gave no answer, by the kind of error.",
	}
	LimiterWaitDuration = &stat.Instrument{
		Name: "weir.limiter.wait.duration", Unit: "s", Kind: stat.Distribution, Attrs: []string{attrLimiter},
		Help: "How long requests waited that were admitted after a wait.", Bounds: powersOfTwo(-13, 6), // 122 µs to 64 s
	}
)

// limiters lists them in the order of docs/metrics.md.
var limiters = []*stat.Instrument{
	LimiterRequests, LimiterPermits, LimiterNear, LimiterWaiting, LimiterAvailable, LimiterLimit,
	LimiterPeriod, LimiterKeys, LimiterEvictions, LimiterBackendErrors, LimiterWaitDuration,
}
