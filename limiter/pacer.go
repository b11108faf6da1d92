package limiter

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

func validatePace(r Rate, maxWaiters int) error {
	if r.IsUnlimited() {
		return errors.New("limiter: Rate is unlimited, must be finite")
	}
	err := r.Validate()
	if maxWaiters < 0 {
		err = errors.Join(err, fmt.Errorf("limiter: MaxWaiters is %d, must be at least 1 (or 0 for no bound)", maxWaiters))
	}
	return err
}

// pacer is the lock, the clock and the queue around a curve.
type pacer struct {
	epoch time.Time
	line  queue

	mu    sync.Mutex
	curve curve
	begun bool
}

// begin has it begin at the first time that is given, where that is before it was made.
func (p *pacer) begin(at time.Duration) {
	if !p.begun {
		p.begun = true
		p.curve.next = min(p.curve.next, floorMicros(at))
	}
}

func newPacer(r Rate, maxWaiters int, epoch time.Time, c curve) *pacer {
	p := &pacer{epoch: epoch, curve: c}
	p.line.max = maxWaiters
	p.curve.setRate(0, r.perSecond())
	return p
}

// Wait waits for what earlier callers owe, makes the caller owe for n permits, and returns the time waited. Callers
// are served in order of arrival and owe nothing until they are. The errors are those of a [TokenBucket]'s Wait.
func (p *pacer) Wait(ctx context.Context, n int) (time.Duration, error) {
	return p.WaitAtMost(ctx, n, Never)
}

// WaitAtMost is Wait that gives up at once, with a *LimitedError, where it would take longer than maxWait.
func (p *pacer) WaitAtMost(ctx context.Context, n int, maxWait time.Duration) (time.Duration, error) {
	began := p.now()
	err := p.line.wait(ctx, p, request{n: n, limit: maxWait})
	return (p.now() - began).Truncate(time.Microsecond), err
}

// Reserve makes the caller owe for n permits and returns how long it is to wait before it goes on; ok is false,
// and nothing is owed, where that is longer than limit or n is below 1. It is for callers who
// sleep by themselves; those who reserve go before those who wait in the queue.
func (p *pacer) Reserve(n int, limit time.Duration) (wait time.Duration, ok bool) {
	return p.reserve(p.now(), n, limit)
}

// ReserveAt is Reserve at a given time.
func (p *pacer) ReserveAt(t time.Time, n int, limit time.Duration) (wait time.Duration, ok bool) {
	return p.reserve(within(t.Sub(p.epoch)), n, limit)
}

// SetRate changes the rate. What is owed stays as it is, and stored permits keep their share of the most that
// are stored. An error says that the rate makes no sense, and nothing changes then.
func (p *pacer) SetRate(r Rate) error { return p.setRate(p.now(), r) }

// SetRateAt is SetRate at a given time.
func (p *pacer) SetRateAt(t time.Time, r Rate) error { return p.setRate(within(t.Sub(p.epoch)), r) }

func (p *pacer) setRate(at time.Duration, r Rate) error {
	if err := validatePace(r, 0); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begin(at)
	p.curve.setRate(floorMicros(at), r.perSecond()) // when the first of the queue may go stays, so it need not know
	return nil
}

func (p *pacer) reserve(at time.Duration, n int, limit time.Duration) (wait time.Duration, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begin(at)
	now := floorMicros(at)
	wait = owed(p.curve.next, time.Duration(now)*time.Microsecond)
	if n < 1 || wait > max(limit, 0) {
		return 0, false
	}
	p.curve.reserve(now, float64(n))
	return wait, true
}

func (p *pacer) now() time.Duration { return within(time.Since(p.epoch)) }

func (p *pacer) serve(r *Result, at time.Duration, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.look(r, at, 0, n); r.OK {
		p.curve.reserve(floorMicros(at), float64(n))
	}
}

func (p *pacer) after(r *Result, at time.Duration, ahead int64, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.look(r, at, ahead, n)
}

func (p *pacer) look(r *Result, at time.Duration, ahead int64, n int) {
	p.begin(at)
	then := p.curve
	if ahead > 0 {
		then.reserve(floorMicros(at), float64(ahead))
	}
	r.RetryAfter = owed(then.next, at)
	if n < 1 {
		r.RetryAfter = Never
	}
	r.OK = r.RetryAfter == 0
}

// owed is the time from at to a time in microseconds: 0 where that has passed, Never where it is too far.
func owed(next int64, at time.Duration) time.Duration {
	if next > int64(latest)/1000 {
		return Never
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
