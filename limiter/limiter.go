package limiter

import (
	"context"
	"time"
)

// Limiter decides whether a request may go now. All limiters of this package implement it, and
// other packages can implement it too; package limitertest tests an implementation.
//
// Implementations must be safe for concurrent use and must not block. A limiter can have more
// methods: those of [TimedLimiter], those of [WaitLimiter], or
//
//	Hold(d time.Duration)
//	Refund(taken time.Time, n int)
//
// Hold refuses all requests for d. Gate.Hold of package weir calls it when the service behind the
// limiter asks to wait. Refund gives back n tokens that were taken at the time taken. [Reserve] and
// gates call it for tokens that were not used. It must not let more requests pass than the limit
// allows, however late it is called, so it gives back no token that has come back by itself. The
// tokens of a limiter without Refund stay taken.
//
// A limiter that asks a server implements [Remote] instead.
type Limiter interface {
	// Take takes n tokens, or none if there are fewer.
	Take(n int) Result
}

// TimedLimiter is a [Limiter] whose caller can give the time, for replays and simulations.
//
// Use either Take, which reads the clock, or TakeAt. To use both, pass times from the clock to
// TakeAt. A time that is earlier than a time given before never adds tokens, and a request at that
// time may be refused although there are tokens.
type TimedLimiter interface {
	Limiter
	// TakeAt is Take at the time t.
	TakeAt(t time.Time, n int) Result
}

// WaitLimiter is a limiter whose callers can wait for tokens.
type WaitLimiter interface {
	// Wait takes n tokens as soon as there are that many, in order of arrival. If it returns an
	// error, it has taken nothing: ctx is done, or the wait cannot succeed (see [LimitedError]).
	Wait(ctx context.Context, n int) error
	// WaitAtMost is like Wait but returns an error at once if the wait would exceed maxWait. It
	// also returns after maxWait if the limiter changes during the wait.
	WaitAtMost(ctx context.Context, n int, maxWait time.Duration) error
}

// holder is a limiter that can be held.
type holder interface {
	Hold(d time.Duration)
}
