package limiter

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// ConcurrencyConfig says how a [Concurrency] limits.
type ConcurrencyConfig struct {
	Limit      int // the most calls in flight. Must be given.
	MaxWaiters int // the most callers that may wait at once; the next gets ErrQueueFull. Default: no bound.
}

// Validate returns nil for a configuration that makes sense, and otherwise an error that names all faults.
func (c ConcurrencyConfig) Validate() error {
	var faults []error
	if c.Limit < 1 {
		faults = append(faults, fmt.Errorf("limiter: Limit is %d, must be at least 1", c.Limit))
	}
	if c.MaxWaiters < 0 {
		faults = append(faults, fmt.Errorf("limiter: MaxWaiters is %d, must be at least 1 (or 0 for no bound)", c.MaxWaiters))
	}
	return errors.Join(faults...)
}

// Concurrency bounds how many calls are in flight at once. Callers who wait are served in order
// of arrival, and nobody passes them by.
//
// All methods are safe for concurrent use; only Acquire blocks.
type Concurrency struct {
	limit  atomic.Int64
	flying atomic.Int64
	line   queue
}

// NewConcurrency makes a limiter with nothing in flight. It panics with the error of c.Validate where there is one.
func NewConcurrency(c ConcurrencyConfig) *Concurrency {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	l := &Concurrency{}
	l.limit.Store(int64(c.Limit))
	l.line.max = c.MaxWaiters
	return l
}

// Acquire waits until the call may start. The caller calls release when the call has ended; to do so
// again does nothing. A context that is done gives its error, a deadline that passes while
// waiting a *LimitedError that matches context.DeadlineExceeded, and a queue that is full one that matches ErrQueueFull.
func (l *Concurrency) Acquire(ctx context.Context) (release func(), err error) {
	if err := l.line.wait(ctx, l, request{n: 1, limit: Never}); err != nil {
		return nil, err
	}
	return l.releaser(), nil
}

// TryAcquire is Acquire that does not wait: where the call may not start at once, ok is false and release nil.
func (l *Concurrency) TryAcquire() (release func(), ok bool) {
	if l.line.ahead.Load() != 0 || !l.enter() {
		return nil, false
	}
	return l.releaser(), true
}

// SetLimit changes the limit, which must be at least 1: an error says that it is not, and nothing changes
// then. Calls in flight beyond a lower limit go on.
func (l *Concurrency) SetLimit(n int) error {
	if err := (ConcurrencyConfig{Limit: n}).Validate(); err != nil {
		return err
	}
	l.limit.Store(int64(n))
	l.line.poke()
	return nil
}

// InFlight is how many calls are in flight.
func (l *Concurrency) InFlight() int { return int(l.flying.Load()) }

// Limit is the most calls in flight.
func (l *Concurrency) Limit() int { return int(l.limit.Load()) }

func (l *Concurrency) enter() bool {
	for {
		flying := l.flying.Load()
		if flying >= l.limit.Load() {
			return false
		}
		if l.flying.CompareAndSwap(flying, flying+1) {
			return true
		}
	}
}

func (l *Concurrency) releaser() func() {
	var released atomic.Bool
	return func() {
		if !released.Swap(true) {
			l.flying.Add(-1)
			l.line.poke()
		}
	}
}

func (l *Concurrency) now() time.Duration { return 0 }

func (l *Concurrency) serve(r *Result, _ time.Duration, _ int) {
	r.OK, r.Limit = l.enter(), l.Limit()
}

func (l *Concurrency) after(r *Result, _ time.Duration, _ int64, _ int) { r.Limit = l.Limit() }
