package guava

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/weir-go/weir/internal/bridge"
	"github.com/weir-go/weir/limiter"
)

func validate(r limiter.Rate, maxWaiters int) error {
	if r == limiter.Unlimited() {
		return errors.New("guava: Rate is unlimited, must be finite")
	}
	err := r.Validate()
	if maxWaiters < 0 {
		err = errors.Join(err, fmt.Errorf("guava: MaxWaiters is %d, must be at least 1 (or 0 for no bound)", maxWaiters))
	}
	return err
}

// pacer is the lock, the clock and the queue around a curve.
type pacer struct {
	epoch time.Time
	line  bridge.Queue

	mu    sync.Mutex
	curve curve
	begun bool
	last  taken
}

// taken is the last request, which a refund can undo exactly if nothing has happened since.
type taken struct {
	n             int
	before, after curve
}

func newPacer(r limiter.Rate, maxWaiters int, epoch time.Time, c curve) *pacer {
	p := &pacer{epoch: epoch, curve: c}
	p.line = bridge.NewQueue(server{p}, maxWaiters)
	p.curve.setRate(0, bridge.PerSecond(r))
	return p
}

// Take goes on if nothing is owed, and then owes for n permits; otherwise it refuses. There is no limit on n: Remaining is
// math.MaxInt if a request may go, and 0 if it may not.
func (p *pacer) Take(n int) limiter.Result { return p.TakeAt(time.Now(), n) }

// TakeAt is Take at a given time.
func (p *pacer) TakeAt(t time.Time, n int) limiter.Result {
	at, busy := within(t.Sub(p.epoch)), p.line.Busy()
	p.mu.Lock()
	defer p.mu.Unlock()
	owed := p.owed(at, 0)
	r := limiter.Result{OK: n >= 0 && owed == 0 && !busy, Limit: math.MaxInt, RetryAfter: owed}
	if r.OK && n > 0 {
		p.charge(at, n)
	}
	if r.ResetAfter = p.owed(at, 0); r.ResetAfter == 0 && !busy {
		r.Remaining = math.MaxInt
	}
	switch {
	case n < 0:
		r.RetryAfter = limiter.Never
	case busy && n > 0:
		r.RetryAfter = max(owed, 1) // the first of the queue is being served at this moment
	}
	return r
}

// Refund undoes a request for n that was made a moment ago. If others have been made since, what is owed becomes less by n
// intervals.
func (p *pacer) Refund(n int) {
	if n < 1 {
		return
	}
	p.mu.Lock()
	if p.last.n == n && p.curve == p.last.after {
		p.curve = p.last.before
	} else {
		now := floorMicros(p.now())
		back := micros(float64(n) * p.curve.interval)
		if least := min(p.curve.next, now); back < p.curve.next-least {
			p.curve.next -= back
		} else {
			p.curve.next = least
		}
	}
	p.last = taken{}
	p.mu.Unlock()
	p.line.Poke()
}

// Wait waits for what earlier callers owe and makes the caller owe for n permits. Callers
// are served in order of arrival and owe nothing until they are. The errors are those of a limiter.TokenBucket's Wait.
func (p *pacer) Wait(ctx context.Context, n int) error { return p.WaitAtMost(ctx, n, limiter.Never) }

// WaitAtMost is Wait that gives up at once, with a *limiter.LimitedError, where it would take longer than maxWait.
func (p *pacer) WaitAtMost(ctx context.Context, n int, maxWait time.Duration) error {
	return p.line.Wait(ctx, n, maxWait)
}

// Reserve makes the caller owe for n permits and returns how long it is to wait before it goes on; ok is false,
// and nothing is owed, where that is longer than maxWait or n is below 1. It is for callers that
// sleep by themselves; they go before those that wait in the queue.
func (p *pacer) Reserve(n int, maxWait time.Duration) (wait time.Duration, ok bool) {
	return p.reserve(p.now(), n, maxWait)
}

// ReserveAt is Reserve at a given time.
func (p *pacer) ReserveAt(t time.Time, n int, maxWait time.Duration) (wait time.Duration, ok bool) {
	return p.reserve(within(t.Sub(p.epoch)), n, maxWait)
}

// SetRate changes the rate. What is owed stays as it is, and stored permits keep their share of the most that
// are stored. An error says that the rate makes no sense, and nothing changes then.
func (p *pacer) SetRate(r limiter.Rate) error { return p.setRate(p.now(), r) }

// SetRateAt is SetRate at a given time.
func (p *pacer) SetRateAt(t time.Time, r limiter.Rate) error {
	return p.setRate(within(t.Sub(p.epoch)), r)
}

func (p *pacer) setRate(at time.Duration, r limiter.Rate) error {
	if err := validate(r, 0); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begin(at)
	p.curve.setRate(floorMicros(at), bridge.PerSecond(r)) // when the first of the queue may go stays, so it need not know
	return nil
}

func (p *pacer) reserve(at time.Duration, n int, maxWait time.Duration) (wait time.Duration, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begin(at)
	wait = until(p.curve.next, time.Duration(floorMicros(at))*time.Microsecond)
	if n < 1 || wait > max(maxWait, 0) {
		return 0, false
	}
	p.charge(at, n)
	return wait, true
}

// begin has it begin at the first time that is given, where that is before it was made.
func (p *pacer) begin(at time.Duration) {
	if !p.begun {
		p.begun = true
		p.curve.next = min(p.curve.next, floorMicros(at))
	}
}

// charge makes a request for n. The lock is held.
func (p *pacer) charge(at time.Duration, n int) {
	before := p.curve
	p.curve.reserve(floorMicros(at), float64(n))
	p.last = taken{n: n, before: before, after: p.curve}
}

// owed is how long a request must wait after others for ahead permits. The lock is held.
func (p *pacer) owed(at time.Duration, ahead int64) time.Duration {
	p.begin(at)
	then := p.curve
	if ahead > 0 {
		then.reserve(floorMicros(at), float64(ahead))
	}
	return until(then.next, at)
}

// server is a pacer as its queue sees it.
type server struct{ *pacer }

func (s server) Now() time.Duration { return s.pacer.now() }

func (s server) Serve(at time.Duration, n int) (retryAfter time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if retryAfter = s.owed(at, 0); n < 1 {
		return limiter.Never, false
	}
	if retryAfter == 0 {
		s.charge(at, n)
	}
	return retryAfter, retryAfter == 0
}

func (s server) After(at time.Duration, ahead int64, n int) (retryAfter time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if retryAfter = s.owed(at, ahead); n < 1 {
		return limiter.Never, false
	}
	return retryAfter, retryAfter == 0
}

func (p *pacer) now() time.Duration { return within(time.Since(p.epoch)) }

// The first and the last time, such that no sum of two times and a microsecond overflows.
const (
	earliest time.Duration = -1 << 61
	latest   time.Duration = 1<<62 - 1
)

// within keeps a time where differences of two do not overflow.
func within(at time.Duration) time.Duration { return min(max(at, earliest), latest) }

// until is the time from at to a time in microseconds: 0 where that has passed, Never where it is too far.
func until(next int64, at time.Duration) time.Duration {
	if next > int64(latest)/1000 {
		return limiter.Never
	}
	return max(time.Duration(next)*time.Microsecond-at, 0)
}

func floorMicros(at time.Duration) int64 {
	whole := at.Microseconds()
	if at < 0 && at%time.Microsecond != 0 {
		whole--
	}
	return whole
}
