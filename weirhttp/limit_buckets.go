package weirhttp

import (
	"time"

	"github.com/weir-go/weir/limiter"
)

// buckets are the quotas of a Policy with a Rate.
type buckets[K comparable] struct {
	*limiter.NamedGroup[K]

	policy Policy
	each   float64
}

func newBuckets[K comparable](p Policy, name string, maxKeys int) *buckets[K] {
	group := limiter.NewGroup(limiter.GroupConfig[K]{Rate: p.Rate, Burst: p.Burst, MaxKeys: maxKeys, Overflow: p.Overflow})
	return namedBuckets(p, name, group)
}

func namedBuckets[K comparable](p Policy, name string, group *limiter.Group[K]) *buckets[K] {
	n, in := p.terms()
	return &buckets[K]{
		NamedGroup: limiter.NewNamedGroup(name, group, limiter.NamedConfig{Shadow: p.Shadow}), policy: p, each: float64(in) / float64(n),
	}
}

func (b *buckets[K]) take(at time.Time, key K, n int) reply { return b.reply(b.TakeAt(at, key, n)) }

func (b *buckets[K]) ask(at time.Time, key K, n int) reply {
	return b.reply(b.Group().TakeAt(at, key, n))
}

// reply completes an answer. A group that is full refuses a new key, whose bucket is full.
func (b *buckets[K]) reply(r limiter.Result) reply {
	noRoom := r.RetryAfter > 0 && r.RetryAfter != limiter.Never && r.ResetAfter == 0
	next := float64(r.ResetAfter) - float64(r.Limit-r.Remaining-1)*b.each
	return reply{Result: r, next: time.Duration(max(next, 0)), room: !noRoom}
}

func (b *buckets[K]) refund(_ time.Time, key K, n int) { b.Refund(key, n) }

// drain asks for what is left at a new time, because a time before that of a concurrent take shows less.
func (b *buckets[K]) drain(key K, n int) (room bool) {
	group := b.Group()
	for tries := 0; n > 0; tries++ {
		r := b.reply(group.Take(key, n))
		if r.OK {
			break
		}
		if !r.room {
			return false
		}
		left := r.Remaining
		if tries < manyTries { // later the refusal is believed: a key that shares a bucket looks full by itself
			left = group.Take(key, 0).Remaining
		}
		n = min(n-1, left)
	}
	return true
}

// manyTries is more than concurrent takes cause.
const manyTries = 100

func (b *buckets[K]) successor(p Policy, name string) (quotas[K], error) {
	if p.Rate != b.policy.Rate || p.Burst != b.policy.Burst {
		if err := b.Group().SetTier(-1, limiter.Tier{Rate: p.Rate, Burst: p.Burst}); err != nil {
			return nil, err
		}
	}
	if p.Shadow != b.policy.Shadow {
		return namedBuckets(p, name, b.Group()), nil
	}
	n, in := p.terms()
	return &buckets[K]{NamedGroup: b.NamedGroup, policy: p, each: float64(in) / float64(n)}, nil
}
