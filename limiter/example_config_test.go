package limiter_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir/limiter"
)

// Who keeps asking while refused stays out.
func ExampleWindowConfig() {
	for _, counts := range []bool{false, true} {
		codes := limiter.NewSlidingLogAt(limiter.WindowConfig{Limit: 2, Span: time.Minute, CountRefused: counts}, noon)
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

func ExampleSlidingConfig() {
	fmt.Println(limiter.SlidingConfig{Limit: 100, Span: time.Hour, Buckets: 3600}.Validate()) // moves each second
	fmt.Println(limiter.SlidingConfig{Limit: 100, Span: time.Hour, Buckets: 1_000_000}.Validate())
	// Output:
	// <nil>
	// limiter: Buckets is 1000000, must lie between 1 and 100000 (or be 0 for the default)
}

func ExampleLeakyConfig() {
	fmt.Println(limiter.LeakyConfig{Capacity: -1}.Validate())
	// Output:
	// limiter: Rate is unset, must be above 0
	// limiter: Capacity is -1, must be at least 1 (or 0 for the default)
}

// After a pause of any length the permits of two seconds are there at once.
func ExampleSmoothConfig() {
	s := limiter.NewSmoothAt(limiter.SmoothConfig{Rate: limiter.PerSecond(4), Burst: 2 * time.Second}, noon)
	later := noon.Add(time.Hour)
	for _, n := range []int{8, 1, 1} {
		wait, _ := s.ReserveAt(later, n, limiter.Never)
		fmt.Println(wait)
	}
	// Output:
	// 0s
	// 0s
	// 250ms
}

// Cold, an interval is four times as long.
func ExampleWarmUpConfig() {
	w := limiter.NewWarmUpAt(limiter.WarmUpConfig{Rate: limiter.PerSecond(10), Period: time.Second, Cold: 4}, noon)
	w.ReserveAt(noon, 1, limiter.Never) // the first is free, and the next pays for it
	wait, _ := w.ReserveAt(noon, 1, limiter.Never)
	fmt.Println(wait > 300*time.Millisecond, wait <= 400*time.Millisecond)
	// Output: true true
}

func ExampleConcurrencyConfig() {
	fmt.Println(limiter.ConcurrencyConfig{Limit: 0, MaxWaiters: -1}.Validate())
	// Output:
	// limiter: Limit is 0, must be at least 1
	// limiter: MaxWaiters is -1, must be at least 1 (or 0 for no bound)
}

func ExampleGroupConfig() {
	users := limiter.NewGroup(limiter.GroupConfig[int64]{Rate: limiter.PerSecond(5), MaxKeys: 10_000})
	fmt.Println(users.Take(4711, 0).Limit, users.Len())
	// Output: 5 0
}

// There is room for one user. One more has no limit to himself.
func ExampleOverflow() {
	for _, overflow := range []limiter.Overflow{limiter.RefuseNew, limiter.ShareNew} {
		users := limiter.NewGroupAt(limiter.GroupConfig[string]{
			Rate: limiter.PerMinute(1), Burst: 1, MaxKeys: 1, Overflow: overflow,
		}, noon)
		users.TakeAt(noon, "ann", 1)
		fmt.Println(overflow, users.TakeAt(noon, "bob", 1).OK, users.TakeAt(noon, "eve", 1).OK)
	}
	// Output:
	// refuse new false false
	// share new true false
}

// Half of the limit is near enough to know of.
func ExampleNamedConfig() {
	l := limiter.NewNamed("search", limiter.NewTokenBucketAt(limiter.Config{Rate: limiter.PerHour(1), Burst: 10}, noon), limiter.NamedConfig{Near: 0.5})
	l.TakeAt(noon, 5)
	l.TakeAt(noon, 2)
	fmt.Println(l.Stats().Near)
	// Output: 2
}

func ExampleLimitedError() {
	l := limiter.NewNamed("search", limiter.NewTokenBucket(limiter.Config{Rate: limiter.PerHour(1), Burst: 2}), limiter.NamedConfig{})
	err := l.TryWait(context.Background(), 3, time.Second)
	if limited, ok := errors.AsType[*limiter.LimitedError](err); ok {
		fmt.Println(limited.Name, limited.Reason, limited.Limit, limited.RetryAfter() == limiter.Never)
	}
	// Output: search more than the limit 2 true
}
