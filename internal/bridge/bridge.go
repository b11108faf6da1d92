// Package bridge lets packages of this module use what is no part of the API of package limiter. Package limiter
// sets the variables when it is initialized.
package bridge

import (
	"context"
	"time"
)

// Server is a limiter as its queue sees it.
type Server interface {
	// Now is the present time.
	Now() time.Duration
	// Serve takes n permits, whoever waits, or says how long it takes until that can be tried again.
	Serve(at time.Duration, n int) (retryAfter time.Duration, ok bool)
	// After tells what Serve would answer after ahead other permits have been taken. It takes nothing.
	After(at time.Duration, ahead int64, n int) (retryAfter time.Duration, ok bool)
}

// Queue lets callers wait for a limiter in order of arrival.
type Queue interface {
	// Wait returns nil once the server has taken n permits for the caller, and otherwise a *limiter.LimitedError or the
	// error of the context.
	Wait(ctx context.Context, n int, maxWait time.Duration) error
	// Busy reports whether anybody waits.
	Busy() bool
	// Poke makes the first caller look again.
	Poke()
}

var (
	// NewQueue makes a queue in which at most maxWaiters may wait, or any number if that is 0.
	NewQueue func(s Server, maxWaiters int) Queue
	// Uncounted returns the TakeAt of a limiter.Group as a value that has only that method, and counts nothing in statistics:
	// for a package that asks several groups before it counts.
	Uncounted func(group any) any
	// PerSecond returns a limiter.Rate as a number per second.
	PerSecond func(rate any) float64
)
