package limiter

import (
	"context"
	"time"
)

// Limiter says whether something may be done now. Every limiter of this package is one, and whatever limits calls can be
// one: see package limitertest for a test of yours.
//
// Implementations are safe for concurrent use and never block in these methods. What a limiter can do besides, it says by
// implementing [TimedLimiter] or [WaitLimiter], or by a method
//
//	Hold(d time.Duration)
//
// that admits nothing for d: what to do when the service behind it has said when to come back. Gate.Hold of package weir
// calls it, and so do [Named] and [Joint]. A limiter that asks a server is a [Remote].
type Limiter interface {
	// Take takes n permits now, all of them or none.
	Take(n int) Result
	// Refund gives back n permits that were taken a moment ago, as if they had never been
	// taken. It never gives back more than fills the limiter up. n below 1 does nothing.
	Refund(n int)
}

// TimedLimiter is a limiter that can be told what time it is, for replays and simulations.
//
// A limiter is driven either by the real clock (Take) or by given times (TakeAt), and not
// by both in turn unless the given times come from the real clock. A request at a time before one
// that was given already may be refused although there are permits; it never adds permits.
type TimedLimiter interface {
	Limiter
	// TakeAt is Take at a given time.
	TakeAt(t time.Time, n int) Result
}

// WaitLimiter is a limiter that callers can wait for.
type WaitLimiter interface {
	// Wait takes n permits as soon as there are that many, in order of arrival, and
	// returns nil then. Otherwise nothing has been taken: the context was done
	// first, or waiting is of no use (see LimitedError).
	Wait(ctx context.Context, n int) error
	// WaitAtMost is Wait that gives up at once where it would take longer than maxWait, and after
	// maxWait where the limiter has changed meanwhile.
	WaitAtMost(ctx context.Context, n int, maxWait time.Duration) error
}

// holder is a limiter that can be told to admit nothing for a while.
type holder interface {
	// Hold admits nothing for d.
	Hold(d time.Duration)
}
