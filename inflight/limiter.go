package inflight

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/settings"

	"github.com/weir-go/weir/internal/verdict"
	"github.com/weir-go/weir/window"
)

// Limiter bounds the number of calls in flight. Waiters are served in order of arrival unless a
// [Queue] says otherwise, and no caller overtakes them. [New] makes limiters; the zero value is not
// usable.
//
// All methods are safe for concurrent use. Only Acquire and Run block.
type Limiter struct {
	state      slots
	limit      atomic.Uint32
	set        settings.Version         // of the limit; locked while it is changed by hand
	abandoned  atomic.Int64             // slots whose calls were forgotten
	adaptive   atomic.Pointer[adaptive] // nil for a fixed limit
	epoch      time.Time
	name       string
	statistics *statistics // nil if the limiter has no name
	queue      queue
	turnover   turnover
	lastFull   [priorities]atomic.Pointer[FullError]
}

// New returns a limiter with no call in flight. It panics with the error of c.Validate if c is
// invalid.
func New(c Config) *Limiter {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	l := &Limiter{name: c.Name, epoch: time.Now(), statistics: newStatistics(c)}
	l.queue.set(c)
	l.setLimit(c)
	return l
}

// Acquire waits for a slot. The caller calls Slot.Done when the call has ended. [WithCaller] gives
// ctx the priority and the tenant of the caller, which decide its place in the queue: see [Queue].
//
// If ctx is done, Acquire returns its error. If the deadline of ctx passes during the wait, Acquire
// returns a *[FullError] that matches context.DeadlineExceeded. If MaxWaiters callers wait already,
// either Acquire returns a *[FullError] at once, or another waiter gets one and leaves: see
// [Queue]. In shadow mode Acquire returns at once. If no slot is free, it then returns a slot that
// is not counted.
func (l *Limiter) Acquire(ctx context.Context) (slot Slot, err error) {
	err = l.acquire(ctx, &slot)
	return
}

func (l *Limiter) acquire(ctx context.Context, slot *Slot) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if l.tryAcquire(slot) {
		return nil
	}
	held, err := l.wait(ctx, forever)
	if held {
		slot.limiter, slot.start = l, l.startTime()
	}
	return err
}

// TryAcquire is like Acquire but does not wait: if there is no slot, or a caller waits for one, it
// returns a *[FullError]. The slot is the zero Slot if TryAcquire returns an error.
func (l *Limiter) TryAcquire(ctx context.Context) (slot Slot, err error) {
	if err = ctx.Err(); err == nil && !l.tryAcquire(&slot) {
		l.statistics.count(refused)
		err = l.newFullError(CallerOf(ctx), noSlot, waitLimit{})
	}
	return
}

// tryAcquire fills in a zero slot, or reports false. It counts no refusal.
func (l *Limiter) tryAcquire(slot *Slot) bool {
	start, held, ok := l.occupy()
	if held {
		slot.limiter, slot.start = l, start
	}
	return ok
}

// occupy takes a slot if there is one and no caller waits. start is for endCall. In shadow mode a
// call is allowed even if it holds no slot.
func (l *Limiter) occupy() (start time.Duration, held, ok bool) {
	inFlight := l.state.occupy(&l.limit)
	for inFlight == 0 && (l.reclaim() || l.tryRaise()) {
		inFlight = l.state.occupy(&l.limit)
	}
	if inFlight == 0 {
		return 0, false, l.statistics.allowInShadow()
	}
	l.statistics.countNearLimit(inFlight, &l.limit)
	return l.startTime(), true, true
}

// startTime returns the time at which a call with a slot begins, if the limit adapts.
func (l *Limiter) startTime() time.Duration {
	if a := l.adaptive.Load(); a != nil {
		return a.begin()
	}
	return untimed
}

// tryRaise reports whether there may be a slot, because the limit adapts and is higher now.
func (l *Limiter) tryRaise() bool {
	word := l.state.word.Load()
	a := l.adaptive.Load()
	return a != nil && word&waiting == 0 && a.tryRaise(int(word&flyBits))
}

// Run calls fn with a slot, and returns the error of fn. If there is no slot, Run waits or returns
// an error as Acquire does. If fn panics or calls runtime.Goexit, the slot is released and the
// panic propagates.
func (l *Limiter) Run(ctx context.Context, fn func(context.Context) error) (err error) {
	if fn == nil {
		panic("inflight: the function to call is nil")
	}
	var slot Slot
	if err = l.acquire(ctx, &slot); err != nil {
		return err
	}
	returned := false
	defer func() {
		if returned {
			slot.Done(ctx, err)
		} else {
			slot.Record(ctx, verdict.Unreturned[window.Outcome](ctx))
		}
	}()
	err = fn(ctx)
	returned = true
	return err
}

// InFlight returns the number of calls in flight.
func (l *Limiter) InFlight() int { return l.state.inFlight() }

// Limit returns the highest number of calls in flight.
func (l *Limiter) Limit() int { return int(l.limit.Load()) }

// Queue returns how callers wait.
func (l *Limiter) Queue() Queue {
	return *l.queue.config.Load()
}

// Name returns the name of the limiter, or "" if it has none.
func (l *Limiter) Name() string { return l.name }
