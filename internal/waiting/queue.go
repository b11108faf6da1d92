package waiting

import (
	"context"
	"time"
)

// Source is a limiter as its [Queue] uses it.
type Source interface {
	// Acquire takes n tokens without regard to the queue, or returns how long to wait before a
	// retry.
	Acquire(n int) (retryAfter time.Duration, ok bool)
	// Predict returns what Acquire would return after ahead other tokens had been taken. It takes
	// nothing.
	Predict(ahead int64, n int) (retryAfter time.Duration, ok bool)
}

// Queue lets callers wait for a limiter in order of arrival. Package limiter makes queues for the
// limiters of other packages.
type Queue interface {
	// Wait returns nil once the source has taken n tokens for the caller. Its errors are those of
	// limiter.WaitLimiter.
	Wait(ctx context.Context, n int) error
	// HasWaiters reports whether a caller waits.
	HasWaiters() bool
	// WakeFirst makes the first waiter try again.
	WakeFirst()
}
