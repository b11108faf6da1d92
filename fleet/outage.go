package fleet

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir/limiter"
)

// OnOutage is the policy by which a limiter decides while Redis is unavailable: see [ErrUnavailable]. The zero
// value is no policy. Its text is fail-open, fail-closed, fail-local or fail-error.
type OnOutage uint8

const (
	// FailOpen allows every request that does not ask for more than the limit.
	FailOpen OnOutage = iota + 1
	// FailClosed refuses every request.
	FailClosed
	// FailLocal keeps to this node's share of the limit: see Config.Share.
	FailLocal
	// FailError returns the error of Redis, and the caller decides.
	FailError
)

var onOutageNames = [...]string{FailOpen: "fail-open", FailClosed: "fail-closed", FailLocal: "fail-local", FailError: "fail-error"}

// String returns the policy's text.
func (o OnOutage) String() string {
	if o.valid() {
		return onOutageNames[o]
	}
	return fmt.Sprintf("OnOutage(%d)", uint8(o))
}

func (o OnOutage) valid() bool { return o >= FailOpen && o <= FailError }

// MarshalText returns the policy's text, and an empty one for the zero value.
func (o OnOutage) MarshalText() ([]byte, error) {
	switch {
	case o == 0:
		return []byte{}, nil
	case !o.valid():
		return nil, fmt.Errorf("fleet: OnOutage is %d, must be FailOpen, FailClosed, FailLocal or FailError", uint8(o))
	}
	return []byte(onOutageNames[o]), nil
}

// UnmarshalText sets o to the policy of that text. An empty text is the zero value.
func (o *OnOutage) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*o = 0
		return nil
	}
	i := slices.Index(onOutageNames[:], string(text))
	if i < 0 {
		return fmt.Errorf("fleet: OnOutage is %.60q, must be fail-open, fail-closed, fail-local or fail-error", text)
	}
	*o = OnOutage(i)
	return nil
}

// fallback decides by the policy.
type fallback struct {
	policy OnOutage
	groups []*limiter.Group[string] // for FailLocal: one for each rule
	// interval is how long a permit takes to come again, in each group.
	interval []time.Duration
}

// mostPerNanosecond is the highest rate of a limiter.Group. No caller comes near it.
const mostPerNanosecond = 4

func newFallback(c Config, rules []rule) fallback {
	f := fallback{policy: c.OnOutage}
	if c.OnOutage != FailLocal {
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
	r := limiter.Result{OK: f.policy == FailOpen || n == 0, Limit: most}
	switch {
	case n < 0 || n > most:
		r.OK, r.RetryAfter = false, limiter.Never
	case f.policy == FailLocal:
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
