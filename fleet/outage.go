package fleet

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/weir-go/weir/limiter"
)

// OnOutage is the policy by which a limiter decides while Redis is unavailable: see [ErrUnavailable]. The
// empty string is no policy.
type OnOutage string

const (
	// FailOpen allows every request that does not ask for more than the limit.
	FailOpen OnOutage = "fail-open"
	// FailClosed refuses every request.
	FailClosed OnOutage = "fail-closed"
	// FailLocal keeps each key to this node's share of the limit: see Config.Share.
	FailLocal OnOutage = "fail-local"
	// FailError returns the error of Redis, and the caller decides.
	FailError OnOutage = "fail-error"
)

// validate returns an error unless o is one of the policies.
func (o OnOutage) validate() error {
	switch o {
	case FailOpen, FailClosed, FailLocal, FailError:
		return nil
	}
	return fmt.Errorf("fleet: OnOutage is %.60q, must be fail-open, fail-closed, fail-local or fail-error", string(o))
}

// fallback decides by the policy.
type fallback struct {
	policy OnOutage
	limits []scopedLimit
	local  []*limiter.Group[string] // for FailLocal: one for each term
	// interval is how long a permit takes to come again, in each group.
	permitInterval []time.Duration
}

// mostPerNanosecond is the highest rate of a limiter.Group. No caller comes near it.
const mostPerNanosecond = 4

func newFallback(c Config, terms []scopedLimit) fallback {
	f := fallback{policy: c.OnOutage, limits: terms}
	if c.OnOutage != FailLocal {
		return f
	}
	for _, t := range terms {
		events, per := t.longRunRate()
		share := min(events*c.Share, mostPerNanosecond*float64(per))
		f.permitInterval = append(f.permitInterval, max(time.Duration(min(float64(per)/share, math.MaxInt64/2)), 1))
		f.local = append(f.local, limiter.NewGroup(limiter.GroupConfig[string]{
			Rate: limiter.Per(share, per), Burst: max(1, int(math.Floor(float64(t.maxTake())*c.Share))), MaxKeys: c.MaxKeys,
		}))
	}
	return f
}

// each answers a request for n permits, for each term, where Redis may be asked again after a time.
func (f fallback) decide(k requestKey, n int, again time.Duration) []limiter.Result {
	if f.policy == FailLocal && n >= 0 && n <= maxTakeOfAll(f.limits) {
		return f.takeLocal(k, n, again)
	}
	results := make([]limiter.Result, len(f.limits))
	for i, t := range f.limits {
		r := limiter.Result{OK: f.policy != FailClosed || n == 0, Limit: t.maxTake()}
		switch {
		case n < 0 || n > r.Limit:
			r.OK, r.RetryAfter = false, limiter.Never
		case r.OK:
			r.Remaining = r.Limit - n
		default:
			r.RetryAfter = again
		}
		results[i] = r
	}
	return results
}

// look answers as each would, and takes nothing.
func (f fallback) peek(k requestKey, n int, again time.Duration) []limiter.Result {
	if f.policy != FailLocal || n > maxTakeOfAll(f.limits) {
		return f.decide(k, n, again)
	}
	results := make([]limiter.Result, len(f.limits))
	for i, g := range f.local {
		r := f.localResult(i, g.Get(f.localKey(i, k)).Take(0), again)
		if r.OK = r.Remaining >= n; !r.OK {
			r.RetryAfter = again
		}
		results[i] = r
	}
	return results
}

// local takes from every group, or from none.
func (f fallback) takeLocal(k requestKey, n int, again time.Duration) []limiter.Result {
	results := make([]limiter.Result, len(f.limits))
	for i, g := range f.local {
		results[i] = f.localResult(i, g.Get(f.localKey(i, k)).Take(n), again)
		if !results[i].OK {
			f.undoLocal(k, n, results, i, again)
			break
		}
	}
	return results
}

// undo gives back what the groups before one have granted, and looks at those behind it.
func (f fallback) undoLocal(k requestKey, n int, results []limiter.Result, refused int, again time.Duration) {
	for i, g := range f.local {
		if i < refused {
			g.Get(f.localKey(i, k)).Refund(n)
		}
		if i != refused {
			results[i] = f.localResult(i, g.Get(f.localKey(i, k)).Take(0), again)
		}
	}
}

// of is the answer of a group as that of a limit. What is more than the share may be had when Redis is back.
func (f fallback) localResult(i int, r limiter.Result, again time.Duration) limiter.Result {
	if r.Limit = f.limits[i].maxTake(); r.RetryAfter == limiter.Never {
		r.RetryAfter = again
	}
	return r
}

// key is a key of a group: a copy, for it may be a part of something large.
func (f fallback) localKey(i int, k requestKey) string { return strings.Clone(f.limits[i].tagFor(k)) }

// refund gives back what cannot have come again since it was taken.
func (f fallback) refund(k requestKey, n int, age time.Duration) {
	for i, g := range f.local {
		back := float64(n) - math.Ceil(float64(age)/float64(f.permitInterval[i]))
		g.Get(f.localKey(i, k)).Refund(int(max(min(back, math.MaxInt32), 0)))
	}
}
