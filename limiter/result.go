package limiter

import (
	"math"
	"time"
)

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
	// were in use. The other fields are the answer of its Overflow.
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
