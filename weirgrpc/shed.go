package weirgrpc

import (
	"context"
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
type Shed struct{ flights *limiter.NamedConcurrency }

// NewShed returns a rule that keeps to the bound. Several may share one, and its limit may
// be changed at any time. The name stands in errors and metrics. It panics if there is no bound.
func NewShed(name string, c *limiter.Concurrency) *Shed {
	if c == nil {
		panic("weirgrpc: NewShed needs a limiter")
	}
	return &Shed{flights: limiter.NewNamedConcurrency(name, c, limiter.NamedConfig{})}
}

// Name returns the name.
func (s *Shed) Name() string { return s.flights.Name() }

// Observe yields how many calls were let in and refused, and how many more may come.
func (s *Shed) Observe(yield func(*stat.Series, float64) bool) { s.flights.Observe(yield) }

func (s *Shed) admit(context.Context, Call) (pass, error) {
	release, ok := s.flights.TryAcquire()
	if !ok {
		return nil, &limiter.LimitedError{
			Name: s.Name(), Reason: limiter.NoPermits, Limit: s.flights.Concurrency().Limit(), Until: time.Now(),
		}
	}
	return placePass(release), nil
}

// placePass is a place among the calls in flight.
type placePass func()

func (placePass) judge(breaker.Outcome) {}
func (p placePass) end()                { p() }
func (p placePass) back()               { p() }
