package inflight

import (
	"context"
	"sync/atomic"
	"time"
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
	e := well
	if s.limiter.adaptive.Load() != nil {
		e = endingOfCall(ctx, err)
	}
	s.end(e)
}

// end releases the slot once.
func (s *Slot) end(e ending) {
	if s.limiter != nil && !s.done.Load() && s.done.CompareAndSwap(false, true) {
		s.limiter.endCall(s.start, e)
	}
}

// endCall releases the slot of a call that began at start.
func (l *Limiter) endCall(start time.Duration, e ending) {
	if a := l.adaptive.Load(); a != nil {
		// before the release, which serves the waiters of a higher limit too
		a.end(start, l.InFlight(), e)
	}
	if l.state.release() {
		l.serveWaiters()
	}
}
