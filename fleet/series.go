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
type book struct {
	requests, permits [outcomes]figure
	faults            map[string]*figure // all of them, never changed
	waiting           figure
	limit             *stat.Series
}

// figure is a series and its value.
type figure struct {
	atomic.Int64
	series *stat.Series
}

func (b *book) build(name string) {
	for i, outcome := range outcomeNames {
		b.requests[i].series = limiterRequests.Series(name, outcome)
		b.permits[i].series = limiterPermits.Series(name, outcome)
	}
	b.faults = map[string]*figure{}
	for _, fault := range faults {
		b.faults[fault] = &figure{series: limiterBackendErrors.Series(name, fault)}
	}
	b.waiting.series = limiterWaiting.Series(name)
	b.limit = limiterLimit.Series(name)
}

// count books a decision. Peeks and what was not decided are not counted.
func (b *book) count(r Result, err error, n int) {
	switch {
	case err != nil || n == 0:
	case r.OK:
		b.add(allowed, n)
	default:
		b.add(refused, n)
	}
}

func (b *book) add(outcome, n int) {
	b.requests[outcome].Add(1)
	if permits := &b.permits[outcome]; permits.Add(int64(max(n, 0))) < 0 {
		permits.Store(math.MaxInt64) // requests for very many: it stays there rather than to wrap around
	}
}

// fault books an error of Redis.
func (b *book) fault(err error) {
	if e, ok := errors.AsType[*StoreError](err); ok {
		b.faults[e.Fault].Add(1)
	}
}

// observe reports whether the reader wants more.
func (f *figure) observe(yield func(*stat.Series, float64) bool) bool {
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
		if !l.book.requests[i].observe(yield) || !l.book.permits[i].observe(yield) {
			return
		}
	}
	if !l.book.waiting.observe(yield) || !yield(l.book.limit, float64(l.limit)) {
		return
	}
	for _, fault := range faults {
		if !l.book.faults[fault].observe(yield) {
			return
		}
	}
}

var _ stat.Source = (*Limiter)(nil)
