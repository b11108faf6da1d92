package lease

import (
	"time"

	"github.com/weir-go/weir/limiter"
)

// lease is what a Pool knows of a key. The lock of the Pool protects it.
type lease struct {
	key        string
	held       int            // permits not handed out
	size       int            // permits to hold after the next request to the server
	heldSince  time.Duration  // when the oldest held permit was taken, at the earliest
	usedAt     time.Duration  // when the key was last used
	answeredAt time.Duration  // when the server last answered
	answer     limiter.Result // the last answer, less the held permits
	refill     chan struct{}  // closed when the current refill ends; nil if there is none
}

// handOut hands out n permits, which must be held.
func (l *lease) handOut(n int, now time.Duration) limiter.Result {
	l.held -= n
	r := l.answer
	r.OK, r.RetryAfter = true, 0 // the answer may have been a refusal of a larger request
	r.Remaining += l.held
	r.ResetAfter = max(r.ResetAfter-(now-l.answeredAt), 0)
	return r
}

// takeAll removes and returns all held permits.
func (l *lease) takeAll() lease {
	held := lease{key: l.key, held: l.held, heldSince: l.heldSince}
	l.held, l.size = 0, 1
	return held
}

// remainingDivisor limits a lease to this fraction of the remaining permits.
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
