package inflight

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/verdict"
	"github.com/weir-go/weir/window"
)

// Limiter bounds the number of calls in flight. Waiters are served in order of arrival unless a [Queue]
// says otherwise, and no caller overtakes them. [New] makes limiters; the zero value is not usable.
//
// All methods are safe for concurrent use. Only Acquire, AcquireFor and Run block.
type Limiter struct {
	state      slots
	limit      atomic.Uint32
	adaptive   *adaptive // nil for a fixed limit
	epoch      time.Time
	name       string
	statistics *statistics // nil if the limiter has no name
	queue      queue
	turnover   turnover
	lastFull   atomic.Pointer[FullError]
}

// slots is the number of calls in flight, whether callers wait, and how many calls have ended:
//
//	bits 0 to 30   calls in flight
//	bit 31         callers wait
//	bits 32 to 63  calls that have ended, modulo 2^32
//
// They share a word so that the end of a call is one addition, whose result says whether a caller
// waits. The lower half is at least any limit while callers wait, so one comparison keeps new calls
// from overtaking them. The ended calls cost nothing, and show how fast slots are released.
type slots struct{ word atomic.Uint64 }

const (
	waiting  = 1 << 31
	oneEnded = 1 << 32
)

// occupy takes a slot unless callers wait, and returns the calls in flight then, or 0 if there is no
// slot.
func (s *slots) occupy(limit *atomic.Uint32) (inFlight uint32) {
	for {
		old := s.word.Load()
		n := uint32(old)
		if n >= limit.Load() {
			return 0
		}
		if s.word.CompareAndSwap(old, old+1) {
			return n + 1
		}
	}
}

// occupyForWaiter is occupy for the first waiter.
func (s *slots) occupyForWaiter(limit *atomic.Uint32) bool {
	for {
		old := s.word.Load()
		if uint32(old)&^waiting >= limit.Load() {
			return false
		}
		if s.word.CompareAndSwap(old, old+1) {
			return true
		}
	}
}

// release ends a call and reports whether callers wait.
func (s *slots) release() bool { return s.word.Add(oneEnded-1)&waiting != 0 }

func (s *slots) inFlight() int { return int(uint32(s.word.Load()) &^ waiting) }

func (s *slots) ended() uint32 { return uint32(s.word.Load() >> 32) }

// New returns a limiter with no call in flight. It panics with the error of c.Validate if c is invalid.
func New(c Config) *Limiter {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	l := &Limiter{name: c.Name, epoch: time.Now(), statistics: newStatistics(c)}
	if c.Adaptive {
		l.adaptive = newAdaptive(l.epoch, cmp.Or(c.Limit, maxLimit), &l.limit)
	} else {
		l.limit.Store(uint32(c.Limit))
	}
	l.queue.maxWaiters, l.queue.config = c.MaxWaiters, c.Queue
	return l
}

// Acquire waits for a slot. The caller calls Slot.Done when the call has ended.
//
// If ctx is done, Acquire returns its error. If the deadline of ctx passes during the wait, Acquire
// returns a *[FullError] that matches context.DeadlineExceeded. If there are MaxWaiters, it returns a
// *[FullError] at once. In shadow mode it returns at once, with a slot or, if there is none, with one
// that is not counted.
func (l *Limiter) Acquire(ctx context.Context) (slot Slot, err error) {
	err = l.acquire(ctx, &slot, Caller{})
	return
}

// AcquireFor is Acquire for a caller with a priority or a tenant, which decide about its place among
// those who wait: see [Queue].
func (l *Limiter) AcquireFor(ctx context.Context, c Caller) (slot Slot, err error) {
	err = l.acquire(ctx, &slot, c)
	return
}

func (l *Limiter) acquire(ctx context.Context, slot *Slot, c Caller) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if l.tryAcquire(slot) {
		return nil
	}
	if err := l.wait(ctx, c, forever); err != nil {
		return err
	}
	slot.begin(l)
	return nil
}

// TryAcquire is like Acquire but does not wait: if there is no slot, or a caller waits for one, ok is
// false and the slot is the zero Slot. In shadow mode ok is always true.
func (l *Limiter) TryAcquire() (slot Slot, ok bool) {
	ok = l.tryAcquire(&slot)
	if !ok {
		l.statistics.count(refused)
	}
	return
}

// tryAcquire fills in a zero slot, or reports false. It counts no refusal.
func (l *Limiter) tryAcquire(slot *Slot) bool {
	inFlight := l.state.occupy(&l.limit)
	for inFlight == 0 && l.raise() {
		inFlight = l.state.occupy(&l.limit)
	}
	if inFlight == 0 {
		return l.statistics.allowInShadow()
	}
	slot.begin(l)
	l.statistics.countAllowed(inFlight, l.limit.Load())
	return true
}

// raise reports whether there may be a slot, because the limit adapts and is higher now.
func (l *Limiter) raise() bool {
	word := l.state.word.Load()
	return l.adaptive != nil && word&waiting == 0 && l.adaptive.raise(int(uint32(word)))
}

// Run calls fn with a slot, and returns the error of fn. If there is no slot, Run waits or returns an
// error as Acquire does. If fn panics or calls runtime.Goexit, the slot is released and the panic
// propagates.
func (l *Limiter) Run(ctx context.Context, fn func(context.Context) error) (err error) {
	if fn == nil {
		panic("inflight: the function to call is nil")
	}
	var slot Slot
	if err = l.acquire(ctx, &slot, Caller{}); err != nil {
		return err
	}
	returned := false
	defer func() {
		if returned {
			slot.Done(ctx, err)
		} else {
			slot.end(verdict.Unreturned[window.Outcome](ctx))
		}
	}()
	err = fn(ctx)
	returned = true
	return err
}

// SetLimit changes the limit. Calls in flight beyond a lower limit continue. If n is not between 1 and
// 1,000,000,000, or the limit adapts, SetLimit returns an error and changes nothing.
func (l *Limiter) SetLimit(n int) error {
	if l.adaptive != nil {
		return errors.New("inflight: the limit adapts and cannot be set")
	}
	if err := (Config{Limit: n}).Validate(); err != nil {
		return err
	}
	l.limit.Store(uint32(n))
	if l.state.word.Load()&waiting != 0 {
		l.serveWaiters()
	}
	return nil
}

// InFlight returns the number of calls in flight.
func (l *Limiter) InFlight() int { return l.state.inFlight() }

// Limit returns the most calls in flight.
func (l *Limiter) Limit() int { return int(l.limit.Load()) }

// Queue returns how callers wait.
func (l *Limiter) Queue() Queue { return l.queue.config }

// Name returns the name of the limiter, or "" if it has none.
func (l *Limiter) Name() string { return l.name }
