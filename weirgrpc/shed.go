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
// can be changed at any time.
//
// caller returns the priority and the tenant of a call, which decide about its place among the
// waiting calls. nil means the caller of the call's context: see [inflight.WithCaller]. A call is a
// retry if gRPC says so, with grpc-previous-rpc-attempts in its metadata, or if the caller does.
// Shed panics if inFlight is nil.
func Shed(inFlight *inflight.Limiter, caller func(context.Context, Call) inflight.Caller) Rule {
	if inFlight == nil {
		panic(errors.New("weirgrpc: Shed needs a limiter"))
	}
	return Rule{func(ctx context.Context, call Call) (_ pass, err error) {
		p := &slotPass{ctx: ctx}
		if inFlight.Queue().Target > 0 {
			p.slot, err = inFlight.Acquire(withCaller(ctx, call, caller))
		} else {
			p.slot, err = inFlight.TryAcquire(ctx)
		}
		if err != nil {
			return nil, err
		}
		return p, nil
	}}
}

// withCaller returns ctx with the caller of a call.
func withCaller(ctx context.Context, call Call, caller func(context.Context, Call) inflight.Caller) context.Context {
	c := inflight.CallerOf(ctx)
	if caller != nil {
		c = caller(ctx, call)
	}
	if attempts := metadata.ValueFromIncomingContext(ctx, attemptKey); len(attempts) > 0 {
		c.Retry = c.Retry || attempts[0] != "0"
	}
	if caller == nil && !c.Retry {
		return ctx
	}
	return inflight.WithCaller(ctx, c)
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
