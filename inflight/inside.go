package inflight

import (
	"context"
	"errors"
	"time"

	"github.com/weir-go/weir/internal/friend"
	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/window"
)

// Inside returns functions of limiters for the other packages of this module. Users cannot name the
// key.
func Inside(friend.Key) inside { return inside{} } //nolint:revive // only its methods are needed

// inside has the functions of limiters that gates use beyond the API.
type inside struct{}

// New returns a limiter with a name and without statistics, since the gate counts its calls.
func (inside) New(name string, limit int, adaptive bool) *Limiter {
	l := New(Config{Limit: limit, Adaptive: adaptive})
	l.name = name
	return l
}

// Adapts reports whether the limit adapts.
func (inside) Adapts(l *Limiter) bool { return l.adaptive.Load() != nil }

// Reconfigure changes a limiter of New.
func (inside) Reconfigure(l *Limiter, limit int, adaptive bool) {
	l.reconfigure(Config{Limit: limit, Adaptive: adaptive})
}

// TryOccupy is like Occupy, but works only for a fixed limit of New. It may fail although there is
// a slot. The compiler inlines it.
func (inside) TryOccupy(l *Limiter) bool {
	old := l.state.word.Load()
	n := uint32(old & lowBits)
	return n < l.limit.Load() && l.state.word.CompareAndSwap(old, old+oneCall+1)
}

// Vacate releases the slot of TryOccupy, and reports whether callers wait, whom Serve serves. The
// compiler inlines it.
func (inside) Vacate(l *Limiter) (waiters bool) { return l.state.release() }

// Serve gives the slots that are free to the callers that wait.
func (inside) Serve(l *Limiter) { l.serveWaiters() }

// Occupy takes a slot if there is one and no caller waits. start is for End. If ok, the call is
// allowed, and if held, it holds a slot; in shadow mode it may hold none. A refusal is not counted.
func (inside) Occupy(l *Limiter) (start time.Duration, held, ok bool) { return l.occupy() }

// OccupyUncounted is like Occupy, but for a call that a gate counts: AtOnce does not count it if l
// has no statistics.
func (inside) OccupyUncounted(l *Limiter) (start time.Duration, held, ok bool) {
	if l.statistics != nil {
		return l.occupy()
	}
	for !l.state.occupyUncounted(&l.limit) {
		if !l.reclaim() && !l.tryRaise() {
			return 0, false, false
		}
	}
	return l.startTime(), true, true
}

// Wait is OccupyUncounted that waits for a slot for at most maxWait, and counts the outcome.
func (i inside) Wait(ctx context.Context, l *Limiter, maxWait time.Duration) (start time.Duration, held bool, err error) {
	if err := ctx.Err(); err != nil {
		return 0, false, err
	}
	start, held, ok := i.OccupyUncounted(l)
	if ok {
		return start, held, nil
	}
	if held, err = l.wait(ctx, maxWait); held {
		start = l.startTime()
	}
	return start, held, err
}

// NameMaxWait makes the text of a new error of Wait say that the MaxWait of a gate was too short,
// if it was.
func (inside) NameMaxWait(fullError error, maxWait time.Duration) {
	if e, ok := errors.AsType[*FullError](fullError); ok && e.reason == waitedTooLong && e.waited.bound == "" {
		e.maxWait = maxWait
	}
}

// End releases the slot of a call that began at start, which is friend.Untimed for TryOccupy. ctx
// is nil if it is not known. expired reports that the call failed at its deadline, which its
// breaker ignores.
func (inside) End(ctx context.Context, l *Limiter, start time.Duration, o window.Outcome, expired bool) {
	if start != untimed && l.adaptive.Load() != nil {
		var deadline time.Time
		if ctx != nil {
			deadline, _ = ctx.Deadline()
		}
		if expired {
			o = window.Failure
		}
		l.endCall(start, endingOf(ctx, o), deadline)
	} else if l.state.release() { // as in endCall, which is not inlined
		l.serveWaiters()
	}
}

// Refuse counts a refused call and returns its error. The error has the given name if l has none.
func (inside) Refuse(ctx context.Context, l *Limiter, name string) error {
	l.statistics.count(refused)
	if l.name != "" {
		name = l.name
	}
	return l.newGateFullError(name, CallerOf(ctx), noSlot, waitLimit{})
}

// IsFull reports whether Occupy would refuse a call. An adaptive limit notices the attempt.
func (inside) IsFull(l *Limiter) bool {
	n := uint32(l.state.word.Load() & lowBits)
	return n >= l.limit.Load() && l.abandoned.Load() == 0 && !l.statistics.isShadow() && !l.tryRaise()
}

// Abandon marks the slot of a call whose end was forgotten. Any goroutine of the runtime may call
// it, also from outside the testing/synctest bubble of l. The slot is released when the limiter is
// next full. It is not released here, because a goroutine outside a bubble must not wake a waiter
// in it.
func (inside) Abandon(l *Limiter) { l.abandoned.Add(1) }

// Bound returns the state of l.
func (inside) Bound(l *Limiter) instrument.Bound { return l.bound() }

// AtOnce returns the number of calls that Occupy has given a slot.
func (inside) AtOnce(l *Limiter) int64 { return l.state.gotSlotAtOnce() }

// reclaim releases the abandoned slots, and reports whether there were any.
func (l *Limiter) reclaim() bool {
	if l.abandoned.Load() == 0 {
		return false
	}
	n := l.abandoned.Swap(0)
	for range n {
		if l.state.release() {
			l.serveWaiters()
		}
	}
	return n > 0
}
