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
	// Limit is the most calls in flight, at least 1. Must be given.
	Limit int
	// MaxWaiters is the most callers that may wait at once; the next gets ErrQueueFull. Default: no
	// bound.
	MaxWaiters int
	// Name stands in errors and metrics. A limiter with a name keeps statistics and is a [stat.Source].
	// Default: no name and no statistics.
	Name string
	// Named is what a limiter with a name does besides. Default [NamedConfig]'s own.
	Named NamedConfig
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
	return errors.Join(append(faults, c.Named.validateFor(c.Name))...)
}

// Concurrency bounds how many calls are in flight at once. Callers who wait are served in order
// of arrival, and nobody passes them by.
//
// All methods are safe for concurrent use; only Acquire blocks.
type Concurrency struct {
	*statistics
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
	l.statistics = newStatistics(c.Name, c.Named, func() (Result, time.Duration) { return l.standing(true), 0 })
	return l
}

// Acquire waits until the call may start. The caller calls release when the call has ended; to do so
// again does nothing. A context that is done gives its error, a deadline that passes while
// waiting a *LimitedError that matches context.DeadlineExceeded, and a queue that is full one that matches ErrQueueFull. In shadow mode it does not wait,
// and release does nothing for a call for which there was no room.
func (l *Concurrency) Acquire(ctx context.Context) (release func(), err error) {
	if l.statistics == nil {
		return l.acquire(ctx)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	release, ok := l.tryAcquire()
	if ok || l.shadows() {
		r := l.standing(ok)
		l.count(&r, 1)
		return release, nil
	}
	err = l.await(1, func() error {
		release, err = l.acquire(ctx)
		return err
	})
	return release, err
}

// acquire counts nothing.
func (l *Concurrency) acquire(ctx context.Context) (release func(), err error) {
	if err := l.line.wait(ctx, l, request{n: 1, limit: Never}); err != nil {
		return nil, err
	}
	return l.releaser(), nil
}

// TryAcquire is Acquire that does not wait: where the call may not start at once, ok is false and release nil.
// In shadow mode ok is always true.
func (l *Concurrency) TryAcquire() (release func(), ok bool) {
	release, ok = l.tryAcquire()
	if l.statistics == nil {
		return release, ok
	}
	r := l.standing(ok)
	l.count(&r, 1)
	return release, r.OK
}

// tryAcquire counts nothing. In shadow mode there is something to release also where ok is false.
func (l *Concurrency) tryAcquire() (release func(), ok bool) {
	switch {
	case l.line.ahead.Load() == 0 && l.enter():
		return l.releaser(), true
	case l.shadows():
		return func() {}, false
	}
	return nil, false
}

// standing is how things stand after a call has, or has not, been let in.
func (l *Concurrency) standing(ok bool) Result {
	limit := l.Limit()
	return Result{OK: ok, Limit: limit, Remaining: max(limit-l.InFlight(), 0)}
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
