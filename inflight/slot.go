package inflight

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/window"
)

// Slot is the right to have one call in flight. Do not copy a slot after its first use. The zero
// Slot belongs to no limiter, and Done does nothing for it.
//
// A slot that is forgotten stays occupied. Release it in a deferred function, so that a panic does
// not leave it occupied, or use [Limiter.Run].
type Slot struct {
	limiter *Limiter
	start   time.Duration // since the epoch of the limiter, if it adapts
	done    atomic.Bool
}

// Done says that the call has ended, and releases the slot. ctx is the context of the call, and err
// its error or nil. Further calls of Done do nothing. Any goroutine may call Done.
//
// A fixed limit uses neither ctx nor err. Do not write
//
//	defer slot.Done(ctx, err)
//
// because Go evaluates err at the defer statement, where it is still nil.
func (s *Slot) Done(ctx context.Context, err error) {
	if s.limiter == nil {
		return
	}
	if s.start == untimed || s.limiter.adaptive.Load() == nil {
		s.end(well, time.Time{})
		return
	}
	deadline, _ := ctx.Deadline()
	s.end(endingOfCall(ctx, err), deadline)
}

// Record is like Done, but for a caller that has decided the outcome itself. window.Overloaded says
// that the service has refused the call because it has too many.
func (s *Slot) Record(ctx context.Context, o window.Outcome) {
	deadline, _ := ctx.Deadline()
	s.end(endingOf(ctx, o), deadline)
}

// Answered says that the service has begun to answer, and will do so for a while, as with a stream.
// The slot remains occupied until Done, but an adaptive limit counts the call as a success that
// ended now. Call Answered before Done, and not at the same time. Further calls do nothing.
func (s *Slot) Answered(ctx context.Context) {
	if s.limiter == nil || s.done.Load() {
		return
	}
	if a := s.limiter.adaptive.Load(); a != nil {
		deadline, _ := ctx.Deadline()
		a.end(s.start, s.limiter.InFlight(), well, deadline)
	}
	s.start = untimed
}

// end releases the slot once.
func (s *Slot) end(e ending, deadline time.Time) {
	if s.limiter != nil && !s.done.Load() && s.done.CompareAndSwap(false, true) {
		s.limiter.endCall(s.start, e, deadline)
	}
}

// endCall releases the slot of a call that began at start.
func (l *Limiter) endCall(start time.Duration, e ending, deadline time.Time) {
	if a := l.adaptive.Load(); a != nil {
		// before the release, which serves the waiters of a higher limit too
		a.end(start, l.InFlight(), e, deadline)
	}
	if l.state.release() {
		l.serveWaiters()
	}
}
