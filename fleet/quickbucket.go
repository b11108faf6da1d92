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
	*scripted
	cost, burst int64  // µs, and tokens
	held        string // what stands in the key behind the time
}

func newQuickBucket(ns namespace, t term, r bucketRule) *quickBucket {
	held := fmt.Sprintf(" 0 %d %d %d %d", r.whole, r.part, r.parts, r.Burst)
	return &quickBucket{scripted: newScripted(ns, []term{t}), cost: r.whole, burst: int64(r.Burst), held: held}
}

func (b *quickBucket) decide(ctx context.Context, k target, n int, at time.Time) (limiter.Result, error) {
	if n < 0 || int64(n) > b.burst || !at.IsZero() {
		return b.scripted.decide(ctx, k, n, at)
	}
	cost := int64(n) * b.cost
	reply, err := b.link.decide(ctx, quickBucketScript, b.baseOf(k, b.scripted.terms[0]), cost, b.burst*b.cost, b.held)
	switch {
	case err != nil:
		return limiter.Result{}, err
	case reply[1] < 0:
		return b.scripted.decide(ctx, k, n, at)
	}
	return b.tell(cost, reply[0], reply[1]), nil
}

func (b *quickBucket) each(ctx context.Context, k target, n int, at time.Time) ([]limiter.Result, error) {
	return alone(b.decide(ctx, k, n, at))
}

// tell is the answer to a request that would overdraw the bucket by over, and finds it filled up
// after owed.
func (b *quickBucket) tell(cost, over, owed int64) limiter.Result {
	const us = time.Microsecond
	if over > 0 {
		return limiter.Result{
			Limit: int(b.burst), Remaining: int(max(cost-over, 0) / b.cost),
			RetryAfter: time.Duration(over) * us, ResetAfter: time.Duration(owed) * us,
		}
	}
	return limiter.Result{OK: true, Limit: int(b.burst), Remaining: int(-over / b.cost), ResetAfter: time.Duration(owed+cost) * us}
}
