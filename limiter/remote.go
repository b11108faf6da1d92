package limiter

import "context"

// Remote is a limit that is kept outside this process, such as a limit that all machines of a fleet
// share. A [Limiter] decides at once; a Remote may block, and may fail to decide.
//
// Implementations are safe for concurrent use. An implementation may also have Wait and the other
// methods of [WaitLimiter], so that callers can queue, and a method
//
//	Refund(ctx context.Context, n int) error
//
// that gives n tokens back which were taken a moment ago for a call that was not made.
type Remote interface {
	// Take takes n tokens, all of them or none. It blocks until there is a decision, at most until
	// ctx ends or the implementation gives up. A refusal is a Result that is not OK. An error means
	// that there is no decision: it is not a refusal, and it says nothing about the service that
	// the limit protects, so no breaker counts it.
	Take(ctx context.Context, n int) (Result, error)
}
