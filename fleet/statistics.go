package fleet

import (
	"errors"
	"math"
	"sync/atomic"

	"github.com/weir-go/weir/stat"
)

// What becomes of a request.
const (
	allowed = iota
	refused
	waited
	cancelled
	outcomes
)

var outcomeNames = [outcomes]string{"allowed", "refused", "waited", "cancelled"}

// book counts what a limiter does.
type statistics struct {
	requests, permits [outcomes]metric
	errors            map[string]*metric // all of them, never changed
	waiting           metric
	limit             *stat.Series
}

// figure is a series and its value.
type metric struct {
	atomic.Int64
	series *stat.Series
}

func (b *statistics) init(name string) {
	for i, outcome := range outcomeNames {
		b.requests[i].series = limiterRequests.Series(name, outcome)
		b.permits[i].series = limiterPermits.Series(name, outcome)
	}
	b.errors = map[string]*metric{}
	for _, fault := range faults {
		b.errors[fault] = &metric{series: limiterBackendErrors.Series(name, fault)}
	}
	b.waiting.series = limiterWaiting.Series(name)
	b.limit = limiterLimit.Series(name)
}

// count books a decision. Peeks and what was not decided are not counted.
func (b *statistics) countDecision(r Result, err error, n int) {
	switch {
	case err != nil || n == 0:
	case r.OK:
		b.countRequest(allowed, n)
	default:
		b.countRequest(refused, n)
	}
}

func (b *statistics) countRequest(outcome, n int) {
	b.requests[outcome].Add(1)
	if permits := &b.permits[outcome]; permits.Add(int64(max(n, 0))) < 0 {
		permits.Store(math.MaxInt64) // requests for very many: it stays there rather than to wrap around
	}
}

// fault books an error of Redis.
func (b *statistics) countError(err error) {
	if e, ok := errors.AsType[*StoreError](err); ok {
		b.errors[e.Fault].Add(1)
	}
}

// observe reports whether the reader wants more.
func (f *metric) observe(yield func(*stat.Series, float64) bool) bool {
	value := f.Load()
	if value < 0 {
		value = math.MaxInt64 // just about to be put there
	}
	return yield(f.series, float64(value))
}

// Observe yields the requests and permits by outcome, the callers that wait, the limit, and the errors of Redis: see
// [stat.Source]. What is refused or admitted without Redis, by OnOutage, is among them. It asks Redis
// nothing.
func (l *Limiter) Observe(yield func(*stat.Series, float64) bool) {
	for i := range outcomes {
		if !l.stats.requests[i].observe(yield) || !l.stats.permits[i].observe(yield) {
			return
		}
	}
	if !l.stats.waiting.observe(yield) || !yield(l.stats.limit, float64(l.limit)) {
		return
	}
	for _, fault := range faults {
		if !l.stats.errors[fault].observe(yield) {
			return
		}
	}
}

var _ stat.Source = (*Limiter)(nil)
