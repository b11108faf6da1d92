package fleet

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/weir-go/weir/limiter"
)

// Away is the policy by which a limiter decides while Redis is away: see [ErrAway]. There is no
// default.
type Away uint8

// The policies.
const (
	Open   Away = iota + 1 // all is admitted that does not ask for more than the limit
	Closed                 // all is refused
	Local                  // this node keeps to its share of the limit, by itself: see Config.Share
	Error                  // the caller gets the error, and decides
)

func (a Away) String() string {
	switch a {
	case Open:
		return "open"
	case Closed:
		return "closed"
	case Local:
		return "local"
	case Error:
		return "error"
	}
	return fmt.Sprintf("away %d", uint8(a))
}

// fallback decides by the policy.
type fallback struct {
	away   Away
	groups []*limiter.Group[string] // for Local: one for each rule
	// interval is how long a permit takes to come again, in each group.
	interval []time.Duration
}

// mostPerNanosecond is the highest rate of a limiter.Group. No caller comes near it.
const mostPerNanosecond = 4

func newFallback(c Config, rules []rule) fallback {
	f := fallback{away: c.Away}
	if c.Away != Local {
		return f
	}
	for _, r := range rules {
		events, per := r.pace()
		share := min(events*c.Share, mostPerNanosecond*float64(per))
		f.interval = append(f.interval, max(time.Duration(min(float64(per)/share, math.MaxInt64/2)), 1))
		f.groups = append(f.groups, limiter.NewGroup(limiter.GroupConfig[string]{
			Rate: limiter.Per(share, per), Burst: max(1, int(math.Floor(float64(r.most())*c.Share))), MaxKeys: c.MaxKeys,
		}))
	}
	return f
}

// decide answers a request for n permits of a limit that lets through most at once, given why Redis
// did not and when it may be asked again.
func (f fallback) decide(key string, n, most int, again time.Duration) limiter.Result {
	r := limiter.Result{OK: f.away == Open || n == 0, Limit: most}
	switch {
	case n < 0 || n > most:
		r.OK, r.RetryAfter = false, limiter.Never
	case f.away == Local:
		return f.local(key, n, most, again)
	case r.OK:
		r.Remaining = most - n
	default:
		r.RetryAfter = again
	}
	return r
}

// local takes from every group, or from none.
func (f fallback) local(key string, n, most int, again time.Duration) limiter.Result {
	all := limiter.Result{OK: true, Limit: most, Remaining: most}
	key = strings.Clone(key) // it may be a part of something large
	for i, g := range f.groups {
		r := g.Take(key, n)
		all.Remaining = min(all.Remaining, r.Remaining)
		all.ResetAfter = max(all.ResetAfter, r.ResetAfter)
		all.RetryAfter = max(all.RetryAfter, r.RetryAfter)
		if !r.OK {
			for _, taken := range f.groups[:i] {
				taken.Refund(key, n)
			}
			all.OK = false
			break
		}
	}
	if all.RetryAfter == limiter.Never { // more than the share; Redis may let it through when it is back
		all.RetryAfter = again
	}
	return all
}

// refund gives back what cannot have come again since it was taken.
func (f fallback) refund(key string, n int, age time.Duration) {
	for i, g := range f.groups {
		back := float64(n) - math.Ceil(float64(age)/float64(f.interval[i]))
		g.Refund(key, int(max(min(back, math.MaxInt32), 0)))
	}
}
