package weirgrpc

import (
	"context"
	"errors"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
)

// Shed returns a rule that limits the number of calls in flight and refuses further calls at once.
// A stream is in flight until its handler returns. It is not known when a slot will be free, so
// refusals have no RetryInfo. The limiter has the metrics, can be shared, and can be changed at any
// time. Shed panics if inFlight is nil.
func Shed(inFlight *inflight.Limiter) Rule {
	if inFlight == nil {
		panic(errors.New("weirgrpc: Shed needs a limiter"))
	}
	return Rule{func(context.Context, Call) (pass, error) {
		p, ok := &slotPass{}, false
		if p.slot, ok = inFlight.TryAcquire(); !ok {
			return nil, &inflight.FullError{Name: inFlight.Name(), Limit: inFlight.Limit()}
		}
		return p, nil
	}}
}

// slotPass releases the slot of a call in flight.
type slotPass struct{ slot inflight.Slot }

func (*slotPass) record(breaker.Outcome) {}
func (p *slotPass) end()                 { p.slot.Done(context.Background(), nil) }
func (p *slotPass) undo()                { p.end() }
