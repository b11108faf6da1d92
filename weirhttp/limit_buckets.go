package weirhttp

import (
	"time"

	"github.com/weir-go/weir/internal/bridge"
	"github.com/weir-go/weir/limiter"
)

// buckets are the quotas of a Policy with a Rate.
type buckets[K comparable] struct {
	*limiter.Group[K]

	bare    uncounted[K]
	policy  Policy
	maxKeys int
	each    float64
}

// uncounted is a limiter.Group without its statistics.
type uncounted[K comparable] interface {
	TakeAt(t time.Time, key K, n int) limiter.Result
}

func newBuckets[K comparable](p Policy, name string, maxKeys int, copied func(K) K) *buckets[K] {
	group := limiter.NewGroup(bucketConfig[K](p, name, maxKeys))
	bridge.CopyKeys(group, copied)
	n, in := p.terms()
	return &buckets[K]{
		Group: group, bare: bridge.Uncounted(group).(uncounted[K]), policy: p, maxKeys: maxKeys, each: float64(in) / float64(n),
	}
}

func bucketConfig[K comparable](p Policy, name string, maxKeys int) limiter.GroupConfig[K] {
	return limiter.GroupConfig[K]{
		Rate: p.Rate, Burst: p.Burst, MaxKeys: maxKeys, Overflow: p.Overflow,
		Name: name, Named: limiter.NamedConfig{Shadow: p.Shadow},
	}
}

func (b *buckets[K]) take(at time.Time, key K, n int) reply { return b.reply(b.Get(key).TakeAt(at, n)) }

func (b *buckets[K]) ask(at time.Time, key K, n int) reply {
	return b.reply(b.bare.TakeAt(at, key, n))
}

// reply completes an answer. A group that is full refuses a new key, whose bucket is full.
func (b *buckets[K]) reply(r limiter.Result) reply {
	noRoom := r.RetryAfter > 0 && r.RetryAfter != limiter.Never && r.ResetAfter == 0
	next := float64(r.ResetAfter) - float64(r.Limit-r.Remaining-1)*b.each
	return reply{Result: r, next: time.Duration(max(next, 0)), room: !noRoom}
}

func (b *buckets[K]) refund(_ time.Time, key K, n int) { b.Get(key).Refund(n) }

// drain asks for what is left at a new time, because a time before that of a concurrent take shows less.
func (b *buckets[K]) drain(key K, n int) (room bool) {
	for tries := 0; n > 0; tries++ {
		r := b.reply(b.bare.TakeAt(time.Now(), key, n))
		if r.OK {
			break
		}
		if !r.room {
			return false
		}
		left := r.Remaining
		if tries < manyTries { // later the refusal is believed: a key that shares a bucket looks full by itself
			left = b.bare.TakeAt(time.Now(), key, 0).Remaining
		}
		n = min(n-1, left)
	}
	return true
}

// manyTries is more than concurrent takes cause.
const manyTries = 100

func (b *buckets[K]) successor(p Policy, name string) (quotas[K], error) {
	if p.Rate != b.policy.Rate || p.Burst != b.policy.Burst || p.Shadow != b.policy.Shadow {
		if err := b.Reconfigure(bucketConfig[K](p, name, b.maxKeys)); err != nil {
			return nil, err
		}
	}
	n, in := p.terms()
	return &buckets[K]{Group: b.Group, bare: b.bare, policy: p, maxKeys: b.maxKeys, each: float64(in) / float64(n)}, nil
}
