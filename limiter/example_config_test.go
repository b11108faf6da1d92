package limiter_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir/limiter"
)

// Who keeps asking while refused stays out.
func ExampleSlidingLogConfig() {
	for _, counts := range []bool{false, true} {
		codes := limiter.NewSlidingLogAt(limiter.SlidingLogConfig{Limit: 2, Window: time.Minute, CountRefused: counts}, noon)
		codes.TakeAt(noon, 2)
		for s := range 20 {
			codes.TakeAt(noon.Add(time.Duration(40+s)*time.Second), 1)
		}
		fmt.Println(codes.TakeAt(noon.Add(61*time.Second), 1).OK)
	}
	// Output:
	// true
	// false
}

// A permit comes back when its whole part has left the window, so more parts bring it back sooner.
func ExampleSlidingWindowConfig() {
	for _, parts := range []int{10, 60} {
		l := limiter.NewSlidingWindowAt(limiter.SlidingWindowConfig{Limit: 100, Window: time.Minute, Buckets: parts}, noon)
		l.TakeAt(noon, 100)
		fmt.Println(l.TakeAt(noon, 1).RetryAfter)
	}
	// Output:
	// 1m6s
	// 1m1s
}

// What does not go into the bucket overflows.
func ExampleLeakyBucketConfig() {
	mails := limiter.NewLeakyBucket(limiter.LeakyBucketConfig{Rate: limiter.PerSecond(50), Capacity: 2})
	err := mails.Wait(context.Background(), 3)
	fmt.Println(errors.Is(err, limiter.ErrLimited), err)
	// Output: true limiter: more than the limit (limit 2)
}

func ExampleConcurrencyConfig() {
	reports := limiter.NewConcurrency(limiter.ConcurrencyConfig{Limit: 2})
	for range 3 {
		_, ok := reports.TryAcquire()
		fmt.Println(ok)
	}
	// Output:
	// true
	// true
	// false
}

func ExampleGroupConfig() {
	users := limiter.NewGroup(limiter.GroupConfig[int64]{Rate: limiter.PerSecond(5), MaxKeys: 10_000})
	fmt.Println(users.Get(4711).Take(0).Limit, users.Len())
	// Output: 5 0
}

// There is room for one user. One more has no limit to himself.
func ExampleOverflow() {
	for _, overflow := range []limiter.Overflow{limiter.RefuseNew, limiter.ShareNew} {
		users := limiter.NewGroupAt(limiter.GroupConfig[string]{
			Rate: limiter.PerMinute(1), Burst: 1, MaxKeys: 1, Overflow: overflow,
		}, noon)
		users.Get("ann").TakeAt(noon, 1)
		fmt.Println(overflow, users.Get("bob").TakeAt(noon, 1).OK, users.Get("eve").TakeAt(noon, 1).OK)
	}
	// Output:
	// refuse-new false false
	// share-new true false
}

// Half of the limit is near enough to know of.
func ExampleNamedConfig() {
	l := limiter.NewNamed("search", limiter.NewTokenBucketAt(limiter.TokenBucketConfig{Rate: limiter.PerHour(1), Burst: 10}, noon), limiter.NamedConfig{Near: 0.5})
	l.TakeAt(noon, 5)
	l.TakeAt(noon, 2)
	fmt.Println(l.Stats().Near)
	// Output: 2
}

func ExampleLimitedError() {
	l := limiter.NewNamed("search", limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerHour(1), Burst: 2}), limiter.NamedConfig{})
	err := l.WaitAtMost(context.Background(), 3, time.Second)
	if limited, ok := errors.AsType[*limiter.LimitedError](err); ok {
		fmt.Println(limited.Name, limited.Reason, limited.Limit, limited.RetryAfter() == limiter.Never)
	}
	// Output: search more than the limit 2 true
}

// All permits of a window can be taken in its first moment.
func ExampleFixedWindowConfig() {
	mails := limiter.NewFixedWindowAt(limiter.FixedWindowConfig{Limit: 100, Window: time.Hour}, noon)
	fmt.Println(mails.TakeAt(noon.Add(time.Minute), 100).OK, mails.TakeAt(noon.Add(time.Minute), 1).RetryAfter)
	// Output: true 59m0s
}
