package fleet

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-go/weir/limiter"
)

var quickBucketScript = newScript("quickbucket").decision(2)

// quickBucket is a bucket whose tokens cost whole µs. It has a script of its own, which costs Redis
// less than half and decides for many callers at once, and has that of all limits decide what it
// cannot: on given times, and about keys that were written at another rate.
type quickBucket struct {
	*scriptBackend
	cost, burst int64  // µs, and tokens
	valueSuffix string // what stands in the key behind the time
}

func newQuickBucket(ns namespace, t scopedLimit, r bucketSpec) *quickBucket {
	held := fmt.Sprintf(" 0 %d %d %d %d", r.micros, r.numerator, r.denominator, r.Burst)
	return &quickBucket{scriptBackend: newScriptBackend(ns, []scopedLimit{t}), cost: r.micros, burst: int64(r.Burst), valueSuffix: held}
}

func (b *quickBucket) take(ctx context.Context, k requestKey, n int, at time.Time) (limiter.Result, error) {
	if n < 0 || int64(n) > b.burst || !at.IsZero() {
		return b.scriptBackend.take(ctx, k, n, at)
	}
	cost := int64(n) * b.cost
	reply, err := b.link.decide(ctx, quickBucketScript, b.keyBaseOf(k, b.scriptBackend.limits[0]), cost, b.burst*b.cost, b.valueSuffix)
	switch {
	case err != nil:
		return limiter.Result{}, err
	case reply[1] < 0:
		return b.scriptBackend.take(ctx, k, n, at)
	}
	return b.result(cost, reply[0], reply[1]), nil
}

func (b *quickBucket) takeEach(ctx context.Context, k requestKey, n int, at time.Time) ([]limiter.Result, error) {
	return asList(b.take(ctx, k, n, at))
}

// tell is the answer to a request that would overdraw the bucket by over, and finds it filled up
// after owed.
func (b *quickBucket) result(cost, over, owed int64) limiter.Result {
	const us = time.Microsecond
	if over > 0 {
		return limiter.Result{
			Limit: int(b.burst), Remaining: int(max(cost-over, 0) / b.cost),
			RetryAfter: time.Duration(over) * us, ResetAfter: time.Duration(owed) * us,
		}
	}
	return limiter.Result{OK: true, Limit: int(b.burst), Remaining: int(-over / b.cost), ResetAfter: time.Duration(owed+cost) * us}
}
