package fleet

import (
	"fmt"
	"time"

	"github.com/weir-go/weir/limiter"
)

// OnOutage is the policy that decides while Redis is unavailable: see [ErrUnavailable]. The empty
// string is not a policy.
type OnOutage string

const (
	// FailOpen allows every request for no more than the limit.
	FailOpen OnOutage = "fail-open"
	// FailClosed refuses every request.
	FailClosed OnOutage = "fail-closed"
	// FailLocal limits each key to this node's share: see Config.Share.
	FailLocal OnOutage = "fail-local"
	// FailError returns the error of Redis.
	FailError OnOutage = "fail-error"
)

func (o OnOutage) validate() error {
	switch o {
	case FailOpen, FailClosed, FailLocal, FailError:
		return nil
	}
	return fmt.Errorf("fleet: OnOutage is %.60q, must be fail-open, fail-closed, fail-local or fail-error", string(o))
}

// fallback decides about some limits by the policy.
type fallback struct {
	policy OnOutage
	limits []limitSpec
	shares []*shareTable // of each limit, for FailLocal
	noRoom *metric       // counts requests of keys without room
}

func newFallback(c Config, limits []limitSpec, noRoom *metric) fallback {
	f := fallback{policy: c.OnOutage, limits: limits, noRoom: noRoom}
	if c.OnOutage == FailLocal {
		for _, s := range limits {
			f.shares = append(f.shares, newShareTable(s, c))
		}
	}
	return f
}

// take takes n tokens and returns the result of each limit. retryAfter is the wait until the next
// request to Redis.
func (f fallback) take(k requestKey, n int, retryAfter time.Duration) []limiter.Result {
	return f.decide(k, n, false, retryAfter)
}

// peek returns what take would return.
func (f fallback) peek(k requestKey, n int, retryAfter time.Duration) []limiter.Result {
	return f.decide(k, n, true, retryAfter)
}

func (f fallback) decide(k requestKey, n int, peek bool, retryAfter time.Duration) []limiter.Result {
	if f.policy == FailLocal && n >= 0 && n <= maxTakeOfAll(f.limits) {
		return f.decideLocally(k, n, peek, retryAfter)
	}
	results := make([]limiter.Result, len(f.limits))
	for i, s := range f.limits {
		r := limiter.Result{OK: f.policy != FailClosed || n == 0, Limit: s.maxTake}
		switch {
		case n < 0 || n > r.Limit:
			r.OK, r.RetryAfter = false, limiter.Never
		case r.OK:
			r.Remaining = r.Limit - n
		default:
			r.RetryAfter = retryAfter
		}
		results[i] = r
	}
	return results
}

// decideLocally takes tokens from this node's share of all limits, or of none.
func (f fallback) decideLocally(k requestKey, n int, peek bool, retryAfter time.Duration) []limiter.Result {
	results := make([]limiter.Result, len(f.limits))
	refused, noRoom := len(f.shares), false
	for i, share := range f.shares {
		// after a refusal, the others only report their state
		results[i] = share.take(f.limits[i].tagFor(k), n, peek || refused < i, retryAfter)
		noRoom = noRoom || results[i].NoRoom
		if !results[i].OK {
			refused = min(refused, i)
		}
	}
	if noRoom && n > 0 && !peek {
		f.noRoom.Add(1)
	}
	if refused < len(f.shares) && !peek {
		for i := range refused {
			tag := f.limits[i].tagFor(k)
			f.shares[i].refund(tag, n, 0)
			results[i] = f.shares[i].take(tag, n, true, retryAfter)
		}
	}
	return results
}

// refund gives back the tokens that have not returned since they were taken.
func (f fallback) refund(k requestKey, n int, age time.Duration) {
	for i, share := range f.shares {
		share.refund(f.limits[i].tagFor(k), n, age)
	}
}
