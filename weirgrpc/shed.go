package weirgrpc

import (
	"context"
	"errors"

	"google.golang.org/grpc/metadata"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
)

// Shed returns a rule that limits the number of calls in flight. A call waits for a slot as long as
// the limiter's [inflight.Queue] says, and does not wait if the Queue has no Target. A stream is in
// flight until its handler returns, but an adaptive limit takes its first message for its answer.
// The RetryInfo and the pushback of a refused call give the time until a slot is expected for it.
// That time is lengthened by up to the same time again, so that clients do not all retry at the
// same moment: see [inflight.FullError.RetryAfter]. The limiter has the metrics, can be shared, and
// can be changed at any time. Shed panics if inFlight is nil.
func Shed(inFlight *inflight.Limiter) Rule {
	if inFlight == nil {
		panic(errors.New("weirgrpc: Shed needs a limiter"))
	}
	return ShedBy(inFlight, func(context.Context, Call) (c inflight.Caller) { return c })
}

// ShedBy is Shed with the priority and the tenant of a call, which decide about its place among the
// waiting calls. A call is a retry if gRPC says so, with grpc-previous-rpc-attempts in its
// metadata, or if caller does. ShedBy panics if inFlight or caller is nil.
func ShedBy(inFlight *inflight.Limiter, caller func(context.Context, Call) inflight.Caller) Rule {
	if inFlight == nil || caller == nil {
		panic(errors.New("weirgrpc: ShedBy needs a limiter and a function"))
	}
	waits := inFlight.Queue().Target > 0
	return Rule{func(ctx context.Context, call Call) (pass, error) {
		p := &slotPass{ctx: ctx}
		if !waits {
			var err error
			if p.slot, err = inFlight.TryAcquireFor(inflight.Caller{}); err != nil {
				return nil, err
			}
			return p, nil
		}
		c := caller(ctx, call)
		if attempts := metadata.ValueFromIncomingContext(ctx, "grpc-previous-rpc-attempts"); len(attempts) > 0 {
			c.Retry = c.Retry || attempts[0] != "0"
		}
		var err error
		if p.slot, err = inFlight.AcquireFor(ctx, c); err != nil {
			return nil, err
		}
		return p, nil
	}}
}

// slotPass releases the slot of a call in flight.
type slotPass struct {
	slot inflight.Slot
	ctx  context.Context // of the call
}

// record says that the service has begun to answer: a stream may last long after that.
func (p *slotPass) record(o breaker.Outcome) {
	if o == breaker.Success {
		p.slot.Answered(p.ctx)
	}
}
func (p *slotPass) end()  { p.slot.Done(p.ctx, p.ctx.Err()) }
func (p *slotPass) undo() { p.end() }
