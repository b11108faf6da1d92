package fleet

import (
	"errors"
	"sync/atomic"

	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
)

// statistics counts what a limiter does.
type statistics struct {
	requests *limiter.Requests
	errors   map[string]*metric // by StoreError.Fault; has all of them from the start
	noRoom   metric
	limit    *stat.Series
}

// metric is a series and its value.
type metric struct {
	atomic.Int64
	series *stat.Series
}

func (s *statistics) init(name string, showKeys bool) {
	s.requests = limiter.NewRequests(name, showKeys)
	s.errors = map[string]*metric{}
	for _, fault := range faults {
		s.errors[fault] = &metric{series: limiterBackendErrors.Series(name, fault)}
	}
	s.noRoom.series = limiterNoRoom.Series(name)
	s.limit = limiterLimit.Series(name)
}

// countError counts an error of Redis.
func (s *statistics) countError(err error) {
	if e, ok := errors.AsType[*StoreError](err); ok {
		s.errors[e.Fault].Add(1)
	}
}

// observe reports whether the reader wants more.
func (m *metric) observe(yield func(*stat.Series, float64) bool) bool {
	return yield(m.series, float64(m.Load()))
}

// Observe yields requests and tokens by outcome, waiting callers, requests that found the queue
// full or had no room for their key, tokens near the limit, the limit, and errors of Redis: see
// [stat.Source]. Decisions without Redis, such as those of OnOutage, are included. Observe does not
// ask Redis.
func (l *Limiter) Observe(yield func(*stat.Series, float64) bool) {
	for s, v := range l.stats.requests.Observe {
		if !yield(s, v) {
			return
		}
	}
	if !l.stats.noRoom.observe(yield) || !yield(l.stats.limit, float64(l.maxTake)) {
		return
	}
	for _, fault := range faults {
		if !l.stats.errors[fault].observe(yield) {
			return
		}
	}
}

// Histograms yields how long the requests waited that were allowed after a wait.
func (l *Limiter) Histograms(yield func(*stat.Series, stat.Histogram) bool) {
	l.stats.requests.Histograms(yield)
}

var _ stat.Source = (*Limiter)(nil)

const (
	attrLimiter = "weir.limiter.name"
	attrWindow  = "weir.window.name"
	attrOutcome = "weir.window.outcome"
)

// The instruments of limiters and windows. They equal the instruments of the core module, which are
// internal there. A dashboard therefore shows limiters and windows of both alike.
var (
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

// Busiest returns up to n of the keys that this process has refused most often, with the most
// refused key first. Refusals by OnOutage count too, and so do refusals of callers that would have
// to wait too long. Counting costs nothing for allowed requests. See [limiter.BusyKey] for the
// bounds of the counts, and Config.ShowKeys for what is shown of a key.
func (l *Limiter) Busiest(n int) []limiter.BusyKey { return l.stats.requests.Busiest(n) }
