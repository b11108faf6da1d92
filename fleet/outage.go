package fleet

import (
	"fmt"
	"math"
	"strings"
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
	// For FailLocal, this node's share of each limit.
	local []*limiter.Group[string]
}

// maxLocalRate is the highest rate of a limiter.Group, in events per nanosecond. No caller reaches
// it.
const maxLocalRate = 4

func newFallback(c Config, limits []limitSpec) fallback {
	f := fallback{policy: c.OnOutage, limits: limits}
	if c.OnOutage != FailLocal {
		return f
	}
	for _, s := range limits {
		events := min(s.events*c.Share, maxLocalRate*float64(s.per))
		f.local = append(f.local, limiter.NewGroup(limiter.GroupConfig[string]{
			Rate: limiter.Per(events, s.per), Burst: max(1, int(math.Floor(float64(s.maxTake)*c.Share))), MaxKeys: c.MaxKeys,
		}))
	}
	return f
}

// take takes n tokens and returns the result of each limit. retryAfter is the wait until the next
// request to Redis.
func (f fallback) take(k requestKey, n int, retryAfter time.Duration) []limiter.Result {
	if f.policy == FailLocal && n >= 0 && n <= maxTakeOfAll(f.limits) {
		return f.takeLocal(k, n, retryAfter)
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

// peek returns the results that take would have.
func (f fallback) peek(k requestKey, n int, retryAfter time.Duration) []limiter.Result {
	if f.policy != FailLocal || n > maxTakeOfAll(f.limits) {
		return f.take(k, n, retryAfter)
	}
	results := make([]limiter.Result, len(f.limits))
	for i := range f.local {
		r, _ := f.takeShare(i, k, 0, retryAfter)
		if r.OK = r.Remaining >= n; !r.OK {
			r.RetryAfter = retryAfter
		}
		results[i] = r
	}
	return results
}

// takeLocal takes tokens from this node's share of all limits, or of none.
func (f fallback) takeLocal(k requestKey, n int, retryAfter time.Duration) []limiter.Result {
	results := make([]limiter.Result, len(f.limits))
	taken := make([]*limiter.Reservation, len(f.limits))
	refused := 0
	for ; refused < len(results); refused++ {
		if results[refused], taken[refused] = f.takeShare(refused, k, n, retryAfter); !results[refused].OK {
			break
		}
	}
	for i := range results {
		switch {
		case refused == len(results) || i == refused: // the result stands
		case i < refused:
			taken[i].Refund(n)
			fallthrough
		default:
			results[i], _ = f.takeShare(i, k, 0, retryAfter)
		}
	}
	return results
}

// takeShare takes tokens from this node's share of one limit. A request for more than the share may
// succeed when Redis is back.
func (f fallback) takeShare(i int, k requestKey, n int, retryAfter time.Duration) (limiter.Result, *limiter.Reservation) {
	taken := limiter.Reserve(f.localLimiter(i, k), n)
	r := taken.Result
	if r.Limit = f.limits[i].maxTake; r.RetryAfter == limiter.Never {
		r.RetryAfter = retryAfter
	}
	return r, taken
}

// localLimiter returns this node's share of one limit. The key is copied, because it may be part of
// a large string.
func (f fallback) localLimiter(i int, k requestKey) limiter.Keyed[string] {
	return f.local[i].Get(strings.Clone(f.limits[i].tagFor(k)))
}

// refund gives back tokens that were taken from this node's share.
func (f fallback) refund(k requestKey, n int, age time.Duration) {
	for i := range f.local {
		f.localLimiter(i, k).Refund(time.Now().Add(-age), n)
	}
}
