package inflight

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/verdict"
	"github.com/weir-go/weir/window"
)

// Slot is the right to have one call in flight. Do not copy a slot after its first use. The zero Slot
// belongs to no limiter, and Done does nothing for it.
//
// A slot that is forgotten stays occupied. Release it in a deferred function, so that a panic does not
// leave it occupied, or use [Limiter.Run].
type Slot struct {
	limiter *Limiter
	start   time.Duration // since the epoch of the limiter, if it has an algorithm
	done    atomic.Bool
}

// Done says that the call has ended, and releases the slot. ctx is the context of the call, and err its
// error or nil. Further calls of Done do nothing. Any goroutine may call Done.
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
	o := window.Success
	if s.limiter.algorithm != nil {
		o = verdict.On[window.Outcome](ctx, err, nil)
	}
	s.end(o)
}

// begin makes the slot one of l. The slot was just occupied.
func (s *Slot) begin(l *Limiter) {
	s.limiter = l
	if l.algorithm != nil {
		s.start = time.Since(l.epoch)
	}
}

// end releases the slot once.
func (s *Slot) end(o window.Outcome) {
	if s.limiter != nil && !s.done.Load() && s.done.CompareAndSwap(false, true) {
		s.limiter.endCall(s.start, o)
	}
}

// algorithm adapts the limit to what is seen of the calls. It is safe for concurrent use.
type algorithm interface {
	// update is called when a call that held a slot has ended, and returns the limit from now on, from
	// 1 to maxLimit. now is the time since the limiter was made, latency the duration of the call, and
	// inFlight the number of calls in flight including this one. failed says that the service failed,
	// and ignored that the call says nothing about the service, because its caller cancelled it or an
	// inner guard refused it.
	update(now, latency time.Duration, inFlight int, failed, ignored bool) (limit int)
}

// endCall releases the slot of a call that began at start.
func (l *Limiter) endCall(start time.Duration, o window.Outcome) {
	if l.algorithm != nil {
		now := time.Since(l.epoch)
		limit := l.algorithm.update(now, now-start, l.InFlight(), o == window.Failure, o != window.Success && o != window.Failure)
		l.limit.Store(uint32(limit)) // before the release, which serves the waiters of a higher limit too
	}
	if l.state.release() {
		l.serveWaiters()
	}
}
