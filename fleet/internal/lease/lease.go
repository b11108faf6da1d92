package lease

import (
	"time"

	"github.com/weir-go/weir/limiter"
)

// lease is the state of one key in a Pool. The lock of the Pool protects it.
type lease struct {
	key string
	// held is the number of unused tokens of the lease. The oldest was taken at heldSince or later.
	held      int
	heldSince time.Duration
	// size is the number of tokens to hold after the next request to the server.
	size int
	// usedAt is when the key was last used.
	usedAt time.Duration
	// answer is the last answer of the server, less the held tokens. It came at answeredAt.
	answer     limiter.Result
	answeredAt time.Duration
	// refill is closed when the current refill ends. It is nil if there is none.
	refill chan struct{}
}

// handOut hands out n tokens, which must be held.
func (l *lease) handOut(n int, now time.Duration) limiter.Result {
	l.held -= n
	r := l.answer
	r.OK, r.RetryAfter = true, 0 // the answer may have been a refusal of a larger request
	r.Remaining += l.held
	r.ResetAfter = max(r.ResetAfter-(now-l.answeredAt), 0)
	return r
}

// takeAll removes and returns all held tokens.
func (l *lease) takeAll() lease {
	held := lease{key: l.key, held: l.held, heldSince: l.heldSince}
	l.held, l.size = 0, 1
	return held
}

// remainingDivisor limits a lease to this fraction of the remaining tokens.
const remainingDivisor = 8

// update stores an answer of the server, and determines the size of the next lease.
func (l *lease) update(r limiter.Result, now time.Duration, c Config) {
	if now-l.answeredAt <= c.Age/2 {
		l.size *= 2
	} else {
		l.size /= 2
	}
	l.size = max(min(l.size, c.Max, r.Remaining/remainingDivisor), 1)
	l.answer, l.answeredAt = r, now
}
