package inflight

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/gatehook"
	"github.com/weir-go/weir/window"
)

// A gate uses these functions of a limiter that are not part of the API.
var _ = func() bool {
	gatehook.InFlight = gatehook.Slots[Limiter, window.Outcome]{
		New:             newForGate,
		Adapts:          func(l *Limiter) bool { return l.adaptive.Load() != nil },
		Reconfigure:     func(l *Limiter, limit int, adaptive bool) { l.reconfigure(Config{Limit: limit, Adaptive: adaptive}) },
		Occupy:          (*Limiter).occupy,
		OccupyUncounted: (*Limiter).occupyUncounted,
		Wait:            waitInGate,
		NameMaxWait:     nameMaxWait,
		Refuse:          (*Limiter).refuse,
		IsFull:          (*Limiter).isFull,
		Word:            func(l *Limiter) (*atomic.Uint64, *atomic.Uint32) { return &l.state.word, &l.limit },
		End:             (*Limiter).endCallOfGate,
		Serve:           (*Limiter).serveWaiters,
		Abandon:         (*Limiter).abandon,
		Bound:           (*Limiter).bound,
		AtOnce:          func(l *Limiter) int64 { return l.state.gotSlotAtOnce() },
	}
	return true
}()

// endCallOfGate releases the slot of a call of a gate.
func (l *Limiter) endCallOfGate(start time.Duration, e gatehook.Ending[window.Outcome]) {
	if start != untimed && l.adaptive.Load() != nil {
		var deadline time.Time
		if e.Context != nil {
			deadline, _ = e.Context.Deadline()
		}
		if e.Expired {
			e.Outcome = window.Failure
		}
		l.endCall(start, endingOf(e.Context, e.Outcome), deadline)
	} else if l.state.release() { // as in endCall, which is not inlined
		l.serveWaiters()
	}
}

// newForGate returns a limiter with a name and without statistics, since the gate counts its calls.
func newForGate(name string, limit int, adaptive bool) *Limiter {
	l := New(Config{Limit: limit, Adaptive: adaptive})
	l.name = name
	return l
}

func waitInGate(ctx context.Context, l *Limiter, maxWait time.Duration) (start time.Duration, held bool, err error) {
	if err := ctx.Err(); err != nil {
		return 0, false, err
	}
	start, held, ok := l.occupyUncounted()
	if ok {
		return start, held, nil
	}
	if held, err = l.wait(ctx, Caller{}, maxWait); held {
		start = l.startTime()
	}
	return start, held, err
}

func nameMaxWait(fullError error, maxWait time.Duration) {
	if e, ok := errors.AsType[*FullError](fullError); ok && e.reason == waitedTooLong && e.waited.bound == "" {
		e.maxWait = maxWait
	}
}

// occupyUncounted is like occupy, but for a call that a gate counts.
func (l *Limiter) occupyUncounted() (start time.Duration, held, ok bool) {
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

// refuse counts a refused call and returns its error. The error has the given name if the limiter
// has no name.
func (l *Limiter) refuse(name string) error {
	l.statistics.count(refused)
	if l.name != "" {
		name = l.name
	}
	return l.newGateFullError(name, Caller{}, noSlot, waitLimit{})
}

func (l *Limiter) isFull() bool {
	n := uint32(l.state.word.Load() & lowBits)
	return n >= l.limit.Load() && l.abandoned.Load() == 0 && !l.statistics.isShadow() && !l.tryRaise()
}

// abandon marks the slot of a call whose end was forgotten. The slot is released when the limiter
// is next full. It is not released here, because abandon may run in a goroutine that must not wake
// a waiter in a testing/synctest bubble.
func (l *Limiter) abandon() { l.abandoned.Add(1) }

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
