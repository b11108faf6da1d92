package fleet

import (
	"errors"
	"math"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
)

// Outcomes of a request.
const (
	allowed = iota
	refused
	waited
	cancelled
	outcomes
)

var outcomeNames = [outcomes]string{"allowed", "refused", "waited", "cancelled"}

// statistics counts what a limiter does.
type statistics struct {
	requests, tokens [outcomes]metric
	errors           map[string]*metric // by StoreError.Fault; has all of them from the start
	waiting, noRoom  metric
	queueFull        metric
	limit            *stat.Series
}

// metric is a series and its value.
type metric struct {
	atomic.Int64
	series *stat.Series
}

func (s *statistics) init(name string) {
	for i, outcome := range outcomeNames {
		s.requests[i].series = limiterRequests.Series(name, outcome)
		s.tokens[i].series = limiterTokens.Series(name, outcome)
	}
	s.errors = map[string]*metric{}
	for _, fault := range faults {
		s.errors[fault] = &metric{series: limiterBackendErrors.Series(name, fault)}
	}
	s.waiting.series = limiterWaiting.Series(name)
	s.queueFull.series = limiterQueueFull.Series(name)
	s.noRoom.series = limiterNoRoom.Series(name)
	s.limit = limiterLimit.Series(name)
}

// countDecision counts a request, unless it took 0 tokens or was not decided.
func (s *statistics) countDecision(r Result, err error, n int) {
	switch {
	case err != nil || n == 0:
	case r.OK:
		s.countRequest(allowed, n)
	default:
		s.countRequest(refused, n)
	}
}

func (s *statistics) countRequest(outcome, n int) {
	s.requests[outcome].Add(1)
	if tokens := &s.tokens[outcome]; tokens.Add(int64(max(n, 0))) < 0 {
		tokens.Store(math.MaxInt64) // it has wrapped around
	}
}

// countError counts an error of Redis.
func (s *statistics) countError(err error) {
	if e, ok := errors.AsType[*StoreError](err); ok {
		s.errors[e.Fault].Add(1)
	}
}

// observe reports whether the reader wants more.
func (m *metric) observe(yield func(*stat.Series, float64) bool) bool {
	value := m.Load()
	if value < 0 {
		value = math.MaxInt64 // countRequest is about to store it
	}
	return yield(m.series, float64(value))
}

// Observe yields requests and tokens by outcome, waiting callers, requests that found the queue
// full or had no room for their key, the limit, and errors of Redis: see [stat.Source]. Decisions
// without Redis, such as those of OnOutage, are included. Observe does not ask Redis.
func (l *Limiter) Observe(yield func(*stat.Series, float64) bool) {
	for i := range outcomes {
		if !l.stats.requests[i].observe(yield) || !l.stats.tokens[i].observe(yield) {
			return
		}
	}
	if !l.stats.waiting.observe(yield) || !l.stats.noRoom.observe(yield) || !yield(l.stats.limit, float64(l.maxTake)) {
		return
	}
	if l.stats.queueFull.Load() > 0 && !l.stats.queueFull.observe(yield) {
		return
	}
	for _, fault := range faults {
		if !l.stats.errors[fault].observe(yield) {
			return
		}
	}
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

// Busiest returns up to n of the keys that this process has refused most often, with the most
// refused key first. Refusals by OnOutage count too, and so do refusals of callers that would have
// to wait too long. Counting costs nothing for allowed requests. See [limiter.BusyKey] for the
// bounds of the counts, and Config.ShowKeys for what is shown of a key.
func (l *Limiter) Busiest(n int) []limiter.BusyKey { return l.refusals.Busiest(n) }

// refusalShards is the MaxKeys of the group that newRefusals returns. It only determines how many
// locks the group has, because the group stores no key.
const refusalShards = 1000

// newRefusals returns a group that counts the keys it refuses most often. Each request asks for
// more than the group ever allows, so the group stores only these counts.
func newRefusals(name string, showKeys bool) *limiter.Group[string] {
	return limiter.NewGroup(limiter.GroupConfig[string]{
		Name: name, Rate: limiter.Per(1, time.Hour), Burst: 1, MaxKeys: refusalShards, ShowKeys: showKeys,
	})
}

func (l *Limiter) countRefusedKey(key string) { l.refusals.Get(key).Take(2) }
