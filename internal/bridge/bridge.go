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
	// Uncounted returns a limiter.Group as a value with the methods TakeAt and LookAt, which count nothing in statistics.
	// LookAt returns what TakeAt would return, and takes nothing. It is for a package that asks several groups before it counts.
	Uncounted func(group any) any
	// CopyKeys has a limiter.Group store what a func(K) K returns for a new key, in the place of the key. It is for keys that
	// are part of something large, and must be called before the group is used.
	CopyKeys func(group, copied any)
	// Period returns the time to which the limit of a limiter refers, 0 if that is not known.
	Period func(limiter any) time.Duration
	// GroupFigures returns how many keys a limiter.Group has forgotten, and the limit of a key and the time to which it refers.
	GroupFigures func(group any) (evictions int64, limit int, period time.Duration)
	// TakeAfter is a func(*limiter.TokenBucket, time.Duration, int) bool: it takes tokens at a time that is given as what has
	// passed since that of NewTokenBucketAt, if it can do so quickly. It reports whether it did; if not, TakeAt decides.
	TakeAfter any
	// TakeBeforeWait is a func(limiter.Limiter, int) (r limiter.Result, ok bool): it is Take for a caller that waits if it is
	// refused. The refusal is not counted, neither in statistics nor by CountRefused, since the wait is counted. ok is false,
	// and nothing was taken, for a limiter of another package.
	TakeBeforeWait any
	// ChangeAt changes the limiter.Rate and the burst of a *limiter.TokenBucket at a time, for replays.
	ChangeAt func(bucket any, t time.Time, rate any, burst int) error
	// PerSecond returns a limiter.Rate as a number per second.
	PerSecond func(rate any) float64
)
