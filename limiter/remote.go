package limiter

import "context"

// Remote is a limit kept outside this process, such as a limit that all machines of a fleet share.
// Unlike a [Limiter], it may block, and it may fail to decide.
//
// Implementations must be safe for concurrent use. They can also have the methods of [WaitLimiter],
// so that callers can wait, and these methods:
//
//	Refund(ctx context.Context, taken time.Time, n int) error
//	MaxKeys() int
//
// Refund gives back n tokens for a call that was not made. taken is when the call of Take or
// WaitAtMost that took them began or returned. Refund gives back no token that has come back by
// itself since then. MaxKeys is how many keys the limit can keep: the error of a call that was
// refused with Result.NoRoom names it.
type Remote interface {
	// Take takes n tokens, or none if there are fewer. It blocks until there is a decision, ctx is
	// done or the implementation gives up. A refusal is a Result that is not OK. An error means
	// that there is no decision: it is neither a refusal nor a failure of the service behind the
	// limit, so no breaker counts it.
	Take(ctx context.Context, n int) (Result, error)
}
