package limiter_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir/limiter"
)

// With CountRefused, a caller that keeps asking stays locked out.
func ExampleWindowConfig_countRefused() {
	for _, counts := range []bool{false, true} {
		codes := limiter.NewSlidingLog(limiter.WindowConfig{Limit: 2, Window: time.Minute, CountRefused: counts})
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

// A token comes back when its whole part has left the window, so smaller parts bring it back
// sooner.
func ExampleWindowConfig_buckets() {
	for _, parts := range []int{10, 60} {
		l := limiter.NewSlidingWindow(limiter.WindowConfig{Limit: 100, Window: time.Minute, Buckets: parts})
		l.TakeAt(noon, 100)
		late := l.TakeAt(noon, 1).RetryAfter - time.Minute
		fmt.Println(late > 0, late <= time.Minute/time.Duration(parts))
	}
	// Output:
	// true true
	// true true
}

// A request beyond the capacity of the bucket overflows.
func ExampleLeakyBucketConfig() {
	mails := limiter.NewLeakyBucket(limiter.LeakyBucketConfig{Rate: limiter.PerSecond(50), Capacity: 2})
	err := mails.Wait(context.Background(), 3)
	fmt.Println(errors.Is(err, limiter.ErrLimited), err)
	// Output: true limiter: more than the limit (limit 2)
}

func ExampleGroupConfig() {
	users := limiter.NewGroup(limiter.GroupConfig[int64]{Rate: limiter.PerSecond(5), MaxKeys: 10_000})
	fmt.Println(users.Get(4711).Take(0).Limit, users.Len())
	// Output: 5 0
}

// The group has room for one user. ShareNew decides about all others.
func ExampleGroupConfig_shareNew() {
	for _, shareNew := range []bool{false, true} {
		users := limiter.NewGroupAt(limiter.GroupConfig[string]{
			Rate: limiter.PerMinute(1), Burst: 1, MaxKeys: 1, ShareNew: shareNew,
		}, noon)
		users.Get("ann").TakeAt(noon, 1)
		fmt.Println(shareNew, users.Get("bob").TakeAt(noon, 1).OK, users.Get("eve").TakeAt(noon, 1).OK)
	}
	// Output:
	// false false false
	// true true false
}

// A request must keep both limits, and is counted once.
func ExampleLimitedError() {
	l := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Per(1, time.Hour), Burst: 2, Name: "search"})
	err := l.Wait(context.Background(), 3)
	if limited, ok := errors.AsType[*limiter.LimitedError](err); ok {
		fmt.Println(limited.Name, limited.Reason, limited.Limit, limited.RetryAfter() == limiter.Never)
	}
	// Output: search more than the limit 2 true
}

// All tokens of a window can be taken at its start.
func ExampleWindowConfig() {
	mails := limiter.NewFixedWindow(limiter.WindowConfig{Limit: 100, Window: time.Hour})
	fmt.Println(mails.TakeAt(noon.Add(time.Minute), 100).OK, mails.TakeAt(noon.Add(time.Minute), 1).RetryAfter)
	// Output: true 59m0s
}
