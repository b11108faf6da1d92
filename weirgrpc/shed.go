package weirgrpc

import (
	"context"
	"errors"
	"time"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
)

// Shed is a rule that refuses at once the calls beyond a bound on calls in flight. A stream is in
// flight until its handler returns. When there will be room is not known, so its refusals have no
// RetryInfo. The bound may be shared and changed at any time, and keeps the statistics. Shed panics if
// there is none.
func Shed(inFlight *limiter.Concurrency) Rule {
	if inFlight == nil {
		panic(errors.New("weirgrpc: Shed needs a limiter"))
	}
	return Rule{func(context.Context, Call) (pass, error) {
		release, ok := inFlight.TryAcquire()
		if !ok {
			return nil, &limiter.LimitedError{
				Name: inFlight.Name(), Reason: limiter.NoPermits, Limit: inFlight.Limit(), Until: time.Now(),
			}
		}
		return slotPass(release), nil
	}}
}

// slotPass is a slot among the calls in flight.
type slotPass func()

func (slotPass) record(breaker.Outcome) {}
func (p slotPass) end()                 { p() }
func (p slotPass) undo()                { p() }
