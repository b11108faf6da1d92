package lease

import (
	"time"

	"github.com/weir-go/weir/limiter"
)

// lease is what is held of a key, and known about it. It is under the lock of its purse.
type lease struct {
	key        string
	held       int            // permits in hand
	size       int            // how many to have in hand after the next question
	heldSince  time.Duration  // when the oldest of them was taken, at the earliest
	usedAt     time.Duration  // when it was last asked for
	answeredAt time.Duration  // when the last answer came
	answer     limiter.Result // the last answer, without what is in hand
	refill     chan struct{}  // closed when the refill is over that is under way; nil where none is
}

// hand hands out n permits, which must be there.
func (l *lease) handOut(n int, now time.Duration) limiter.Result {
	l.held -= n
	r := l.answer
	r.OK, r.RetryAfter = true, 0 // it may have been a refusal of more than that
	r.Remaining += l.held
	r.ResetAfter = max(r.ResetAfter-(now-l.answeredAt), 0)
	return r
}

// empty takes out all that is in hand.
func (l *lease) takeAll() lease {
	held := lease{key: l.key, held: l.held, heldSince: l.heldSince}
	l.held, l.size = 0, 1
	return held
}

// nearness is what part of the remaining permits a lease may be.
const remainingDivisor = 8

// learn finds the size of the next lease.
func (l *lease) update(r limiter.Result, now time.Duration, c Config) {
	if now-l.answeredAt <= c.Age/2 {
		l.size *= 2
	} else {
		l.size /= 2
	}
	l.size = max(min(l.size, c.Max, r.Remaining/remainingDivisor), 1)
	l.answer, l.answeredAt = r, now
}
