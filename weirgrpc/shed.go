package weirgrpc

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
)

// Shed is a [Rule] that refuses at once what goes beyond a bound on calls in flight. A stream
// is in flight until its handler is over. When there will be room nobody knows, so its
// refusals have no RetryInfo.
//
// It is a [stat.Source]. All its methods may be called from any number of goroutines.
type Shed struct {
	name    string
	flights *limiter.Concurrency

	passed, refused  atomic.Int64
	requests         [2]*stat.Series // passed, refused
	permits          [2]*stat.Series
	available, limit *stat.Series
}

// NewShed returns a rule that keeps to the bound. Several may share one, and its limit may
// be changed at any time. The name stands in errors and metrics. It panics if there is no bound.
func NewShed(name string, c *limiter.Concurrency) *Shed {
	if c == nil {
		panic("weirgrpc: NewShed needs a limiter")
	}
	s := &Shed{
		name: name, flights: c,
		available: stat.LimiterAvailable.Series(name), limit: stat.LimiterLimit.Series(name),
	}
	began := time.Now()
	for i, outcome := range [...]string{"allowed", "refused"} {
		s.requests[i] = stat.LimiterRequests.Series(name, outcome)
		s.permits[i] = stat.LimiterPermits.Series(name, outcome)
		s.requests[i].Created, s.permits[i].Created = began, began
	}
	return s
}

// Name returns the name.
func (s *Shed) Name() string { return s.name }

// Observe yields how many calls were let in and refused, and how many more may come.
func (s *Shed) Observe(yield func(*stat.Series, float64)) {
	for i, n := range [...]int64{s.passed.Load(), s.refused.Load()} {
		yield(s.requests[i], float64(n))
		yield(s.permits[i], float64(n)) // a call takes one permit
	}
	limit := s.flights.Limit()
	yield(s.available, float64(max(limit-s.flights.InFlight(), 0)))
	yield(s.limit, float64(limit))
}

func (s *Shed) admit(context.Context, Call) (pass, error) {
	release, ok := s.flights.TryAcquire()
	if !ok {
		s.refused.Add(1)
		return nil, &limiter.LimitedError{Name: s.name, Reason: limiter.NoPermits, Limit: s.flights.Limit(), Until: time.Now()}
	}
	s.passed.Add(1)
	return placePass(release), nil
}

// placePass is a place among the calls in flight.
type placePass func()

func (placePass) judge(breaker.Outcome) {}
func (p placePass) end()                { p() }
func (p placePass) back()               { p() }
