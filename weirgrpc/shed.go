package weirgrpc

import (
	"context"
	"errors"
	"time"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
)

// Shed returns a rule that limits the number of calls in flight and refuses further calls at once.
// A stream is in flight until its handler returns. It is not known when a slot will be free, so
// refusals have no RetryInfo. The limiter has the metrics, can be shared, and can be changed at any
// time. Shed panics if inFlight is nil.
func Shed(inFlight *limiter.Concurrency) Rule {
	if inFlight == nil {
		panic(errors.New("weirgrpc: Shed needs a limiter"))
	}
	return Rule{func(context.Context, Call) (pass, error) {
		release, ok := inFlight.TryAcquire()
		if !ok {
			return nil, &limiter.LimitedError{
				Name: inFlight.Name(), Reason: limiter.NoTokens, Limit: inFlight.Limit(), Until: time.Now(),
			}
		}
		return slotPass(release), nil
	}}
}

// slotPass releases the slot of a call in flight.
type slotPass func()

func (slotPass) record(breaker.Outcome) {}
func (p slotPass) end()                 { p() }
func (p slotPass) undo()                { p() }
