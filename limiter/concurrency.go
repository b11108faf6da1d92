package limiter

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// ConcurrencyConfig configures a [Concurrency].
type ConcurrencyConfig struct {
	// Limit is the most calls in flight, at least 1. Required.
	Limit int
	// MaxWaiters is the most callers that may wait at once. Further callers get ErrQueueFull. Default:
	// no bound.
	MaxWaiters int
	// Name appears in errors and metrics. A limiter with a name keeps statistics and is a
	// [stat.Source]. Default: no name and no statistics.
	Name string
	// Shadow allows all calls and counts those that would have been refused. Requires a Name. Default
	// false.
	Shadow bool
}

// Validate returns an error that names every invalid field, or nil.
func (c ConcurrencyConfig) Validate() error {
	var faults []error
	if c.Limit < 1 {
		faults = append(faults, fmt.Errorf("limiter: Limit is %d, must be at least 1", c.Limit))
	}
	return errors.Join(append(faults, validateCommon(c.MaxWaiters, c.Name, c.Shadow))...)
}

// Concurrency limits the number of calls in flight. Waiters are served in order of arrival, and no caller
// overtakes them.
//
// All methods are safe for concurrent use. Only Acquire blocks.
type Concurrency struct {
	*statistics
	limit    atomic.Int64
	inFlight atomic.Int64
	queue    waitQueue
}

// NewConcurrency returns a limiter with no call in flight. It panics with the error of c.Validate if c is
// invalid.
func NewConcurrency(c ConcurrencyConfig) *Concurrency {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	l := &Concurrency{}
	l.limit.Store(int64(c.Limit))
	l.statistics = newStatistics(c.Name, c.Shadow, func() (Result, time.Duration) { return l.answer(true), 0 })
	l.queue.maxWaiters = c.MaxWaiters
	l.queue.keepStatistics(l.statistics)
	return l
}

// Acquire waits for a slot in flight. The caller calls release when the call has ended; further calls of
// release do nothing. If ctx is done, Acquire returns its error. If the deadline passes during the wait,
// it returns a *[LimitedError] that matches context.DeadlineExceeded, and if the queue is full, one that
// matches [ErrQueueFull]. In shadow mode Acquire does not wait, and if there was no slot, release does nothing.
func (l *Concurrency) Acquire(ctx context.Context) (release func(), err error) {
	if l.shadows() && ctx.Err() == nil {
		release, _ = l.TryAcquire()
		return release, nil
	}
	if err := l.queue.wait(ctx, l, 1, Never); err != nil {
		return nil, err
	}
	return l.newRelease(), nil
}

// TryAcquire is like Acquire but does not wait: if there is no slot, ok is false and release is nil. In
// shadow mode ok is always true.
func (l *Concurrency) TryAcquire() (release func(), ok bool) {
	taken := l.queue.waitingTokens.Load() == 0 && l.enter()
	if !l.record(l.answer(taken), 1).OK {
		return nil, false
	}
	if !taken {
		return func() {}, true
	}
	return l.newRelease(), true
}

// SetLimit changes the limit. Calls in flight beyond a lower limit continue. If n is below 1, SetLimit
// returns an error and changes nothing.
func (l *Concurrency) SetLimit(n int) error {
	if err := (ConcurrencyConfig{Limit: n}).Validate(); err != nil {
		return err
	}
	l.limit.Store(int64(n))
	l.queue.wakeFirst()
	return nil
}

// InFlight returns the number of calls in flight.
func (l *Concurrency) InFlight() int { return int(l.inFlight.Load()) }

// Limit returns the most calls in flight.
func (l *Concurrency) Limit() int { return int(l.limit.Load()) }

// answer returns the state after a call was, or was not, given a slot.
func (l *Concurrency) answer(ok bool) Result {
	limit := l.Limit()
	return Result{OK: ok, Limit: limit, Remaining: max(limit-l.InFlight(), 0)}
}

// enter takes a slot, and reports whether there was one.
func (l *Concurrency) enter() bool {
	for {
		inFlight := l.inFlight.Load()
		if inFlight >= l.limit.Load() {
			return false
		}
		if l.inFlight.CompareAndSwap(inFlight, inFlight+1) {
			return true
		}
	}
}

func (l *Concurrency) newRelease() func() {
	var released atomic.Bool
	return func() {
		if !released.Swap(true) {
			l.inFlight.Add(-1)
			l.queue.wakeFirst()
		}
	}
}

func (l *Concurrency) acquire(int) Result { return l.answer(l.enter()) }

func (l *Concurrency) predict(int64, int) Result { return Result{Limit: l.Limit()} }
