package fleet

import (
	"errors"
	"math"
	"time"

	"github.com/weir-go/weir/limiter"
)

// Limit is one limit of a [Limiter]: a [TokenBucket], a [FixedWindow], a [SlidingWindow], a
// [SlidingLog], or a [Shared] limit made of one of these. Packages rediscell and redisson add one
// kind each.
type Limit interface {
	// compile returns the limit with its defaults filled in, or an error that names every invalid
	// field.
	compile() (limitSpec, error)
}

// limitSpec is a compiled limit.
type limitSpec struct {
	// script is the Lua file of this kind of limit, and args are its arguments.
	script string
	args   []any
	// keySuffixes are the ends of the Redis keys. The first key holds what was taken.
	keySuffixes []string
	// maxTake is the maximum number of tokens that one request can take.
	maxTake int
	// The long-run rate is events per span of length per.
	events float64
	per    time.Duration
	// cost is set for token buckets, and cell for CL.THROTTLE.
	cost tokenCost
	cell *cellLimit

	// sharedBy is Shared.By or its default. It is nil for the limits of single keys.
	sharedBy func(key string) string
	// Limits with an equal scope count the same keys together.
	scope int
	// index is the position in Config.Limits.
	index int
}

// windowSpec returns the parts of a limitSpec that all windows have in common.
func windowSpec(script string, limit int, window time.Duration, args ...any) limitSpec {
	return limitSpec{
		script: script, args: append([]any{limit}, args...), keySuffixes: []string{""},
		maxTake: limit, events: float64(limit), per: window,
	}
}

// tagFor returns the tag of the Redis keys in which the limit counts a request.
func (s limitSpec) tagFor(k requestKey) string {
	if s.sharedBy == nil {
		return k.tag
	}
	return keyTag(s.sharedBy(k.key))
}

// requestKey is the key of one request.
type requestKey struct {
	key, tag string
	waiter   *waiter // of a caller in Wait, otherwise nil
}

func newRequestKey(key string) requestKey { return requestKey{key: key, tag: keyTag(key)} }

// maxTakeOfAll returns the maximum number of tokens that one request can take from all limits.
func maxTakeOfAll(limits []limitSpec) int {
	least := math.MaxInt
	for _, s := range limits {
		least = min(least, s.maxTake)
	}
	return least
}

// namespace is the prefix of a limiter's Redis keys.
type namespace struct {
	link *Link
	name string
}

// keyBase returns the common beginning of all Redis keys with a tag.
func (ns namespace) keyBase(tag string) string {
	return ns.link.prefix + ns.name + ":{" + tag + "}"
}

// checkLength returns err, or an error if the reply does not have the expected number of values. A
// proxy or a module may answer anything.
func (ns namespace) checkLength(reply []int64, err error, want int) error {
	if err == nil && len(reply) != want {
		return ns.invalidReply()
	}
	return err
}

// invalidReply returns the error for a reply that no script of this package gives.
func (ns namespace) invalidReply() error { return ns.link.invalidReply() }

func (l *Link) invalidReply() error {
	return &StoreError{link: l.name, Fault: faultOther, cause: errInvalidReply}
}

var errInvalidReply = errors.New("fleet: the reply has numbers that are out of range")

// combineResults returns the result of several limits together. The policy for outages has decided
// if it has decided for one of them.
func combineResults(results []Result) Result {
	all := results[0]
	for _, r := range results[1:] {
		if all.OK == r.OK {
			all.NoRoom = all.NoRoom || r.NoRoom
		} else if all.OK {
			all.OK, all.NoRoom = false, r.NoRoom
		}
		all.Limit = min(all.Limit, r.Limit)
		all.Remaining = min(all.Remaining, r.Remaining)
		all.RetryAfter = max(all.RetryAfter, r.RetryAfter)
		all.ResetAfter = max(all.ResetAfter, r.ResetAfter)
		if r.From == fromOutage {
			all.From = fromOutage
		}
	}
	return all
}

// refuseNegative turns the result for 0 tokens into a refusal if n is negative.
func refuseNegative(r limiter.Result, n int) limiter.Result {
	if n < 0 {
		r.OK, r.RetryAfter = false, limiter.Never
	}
	return r
}

// combineFrom combines results that all have the same origin.
func combineFrom(from string, results []limiter.Result) Result {
	all := make([]Result, len(results))
	for i, r := range results {
		all[i] = Result{Result: r, From: from}
	}
	return combineResults(all)
}
