package fleet

import (
	"errors"
	"math"
	"sync/atomic"

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
