package limiter

import (
	"context"
	"math"
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
//	Charge(n int)
//
// Hold refuses all requests for d. Gate.Hold of package weir calls it when the service behind the
// limiter asks to wait. Refund gives back n tokens that were taken at the time taken. [Reserve] and
// gates call it for tokens that were not used. It must not let more requests pass than the limit
// allows, however late it is called, so it gives back no token that has come back by itself. The
// tokens of a limiter without Refund stay taken. Charge takes n tokens, even if it does not have
// them. Without it, [Reservation.Settle] takes as many as there are.
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
	// error, it has taken nothing: ctx is done, or the wait cannot succeed (see [LimitedError]). It
	// should return at once if the tokens cannot be there before the deadline of ctx. A gate with a
	// MaxWait gives ctx such a deadline.
	Wait(ctx context.Context, n int) error
}

// holder is a limiter that can be held.
type holder interface {
	Hold(d time.Duration)
}

// Never is a RetryAfter which means that the same request can never succeed.
const Never time.Duration = math.MaxInt64

// Result is the answer of a limiter: the five numbers of redis-cell's CL.THROTTLE as Go types, and
// whether a Group had room for the key.
//
// A request for 0 tokens reads the state and changes nothing. It is OK unless tokens are owed, a
// caller waits, or the limiter is held. A request for more than Limit tokens, or for less than 0,
// is refused with RetryAfter Never and changes nothing.
type Result struct {
	// OK reports whether the tokens were taken.
	OK bool
	// NoRoom reports that a [Group] or a [Remote] had no room for the key, because MaxKeys keys
	// were in use. The other fields are the answer for such keys.
	NoRoom bool
	// Limit is the maximum number of tokens that one request can take.
	Limit int
	// Remaining is how many tokens can be taken right after this answer.
	Remaining int
	// RetryAfter is how long to wait until the same request can succeed, if no other caller takes
	// tokens: 0 if OK, Never if it cannot succeed, and above 0 otherwise. A limiter whose
	// RetryAfter is minimal refuses a request that comes one nanosecond earlier. While callers
	// wait, RetryAfter includes the tokens that they want. A window then assumes that they take
	// these tokens one by one, because it would cost too much to follow each waiter. So RetryAfter
	// is too short if waiters want more than one token and leave a part of a window unused.
	RetryAfter time.Duration
	// ResetAfter is how long it takes until Remaining is Limit again, if no tokens are taken.
	ResetAfter time.Duration
}

// refuseBehindWaiters turns r, the predicted answer behind all waiters, into the answer of a Take
// that does not wait.
func refuseBehindWaiters(r *Result, n int) {
	r.Remaining = 0
	if n > 0 && r.OK {
		r.OK, r.RetryAfter = false, 1 // the first waiter is being served at this moment
	}
}

// isPeek reports whether r answers a request for 0 tokens, which a wait allows in any state.
func isPeek(r Result, n int) bool { return n == 0 && r.RetryAfter < Never }

// Remote is a limit kept outside this process, such as a limit that all machines of a fleet share.
// Unlike a [Limiter], it may block, and it may fail to decide.
//
// Implementations must be safe for concurrent use. They can also have the methods of [WaitLimiter],
// so that callers can wait, and these methods:
//
//	Reserve(ctx context.Context, n int) (r Result, refund func(ctx context.Context, n int) error, err error)
//	WaitReserve(ctx context.Context, n int) (refund func(ctx context.Context, n int) error, err error)
//	Charge(ctx context.Context, n int) error
//	MaxKeys() int
//
// Reserve is Take, and WaitReserve is Wait, of tokens that may be given back, because another limit
// may refuse the call: refund gives back n of them, but none that has come back by itself since.
// They are used in the place of Take and Wait. Charge takes n tokens, even if the limit does not
// have them, for calls that have used more than they took. It must count them once, even if it has
// to ask several times. MaxKeys is how many keys the limit can keep: the error of a call that was
// refused with Result.NoRoom names it.
type Remote interface {
	// Take takes n tokens, or none if there are fewer. It blocks until there is a decision, ctx is
	// done or the implementation gives up. A refusal is a Result that is not OK. An error means
	// that there is no decision: it is neither a refusal nor a failure of the service behind the
	// limit, so no breaker counts it.
	Take(ctx context.Context, n int) (Result, error)
}
