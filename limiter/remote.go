package limiter

import "context"

// Remote is a limit kept outside this process, such as a limit that all machines of a fleet share.
// Unlike a [Limiter], it may block, and it may fail to decide.
//
// Implementations must be safe for concurrent use. They can also have the methods of [WaitLimiter],
// so that callers can wait, and these methods:
//
//	Reserve(ctx context.Context, n int) (r Result, refund func(ctx context.Context, n int) error, err error)
//	WaitReserve(ctx context.Context, n int, maxWait time.Duration) (refund func(ctx context.Context, n int) error, err error)
//	MaxKeys() int
//
// Reserve is Take, and WaitReserve is WaitAtMost, of tokens that may be given back, because another
// limit may refuse the call: refund gives back n of them, but none that has come back by itself
// since. They are used in the place of Take and WaitAtMost. MaxKeys is how many keys the limit can
// keep: the error of a call that was refused with Result.NoRoom names it.
type Remote interface {
	// Take takes n tokens, or none if there are fewer. It blocks until there is a decision, ctx is
	// done or the implementation gives up. A refusal is a Result that is not OK. An error means
	// that there is no decision: it is neither a refusal nor a failure of the service behind the
	// limit, so no breaker counts it.
	Take(ctx context.Context, n int) (Result, error)
}
