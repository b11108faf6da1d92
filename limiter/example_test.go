package limiter_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir/limiter"
)

// These examples pass times, so that their output is always the same. In a service, use the
// functions without At.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func ExampleTokenBucket() {
	logins := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerMinute(30), Burst: 2})
	for range 3 {
		r := logins.TakeAt(noon, 1)
		fmt.Println(r.OK, r.Remaining, r.RetryAfter)
	}
	// Output:
	// true 1 0s
	// true 0 0s
	// false 0 2s
}

func ExampleTokenBucket_Wait() {
	uploads := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Per(1, time.Hour), Burst: 1})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	fmt.Println(uploads.Wait(ctx, 1))
	err := uploads.Wait(ctx, 1) // returns at once: the deadline comes long before the token
	fmt.Println(errors.Is(err, limiter.ErrLimited), errors.Is(err, context.DeadlineExceeded))
	// Output:
	// <nil>
	// true true
}

func ExampleTokenBucketConfig() {
	err := limiter.TokenBucketConfig{Rate: limiter.PerSecond(10), Burst: -3}.Validate()
	fmt.Println(err)
	// Output: limiter: Burst is -3, must be at least 1 (or 0 for the default, or Off)
}

func ExampleRate() {
	fmt.Println(limiter.PerSecond(200), limiter.PerMinute(7), limiter.Per(10, 13*time.Second), limiter.Per(1, 100*time.Millisecond))
	// Output: 200/s 7/1m 10/13s 1/100ms
}

// A funnel lets a user reply 15 times, and then once every two seconds. It is a token bucket in
// other words: the free space of the funnel is the tokens of the bucket.
func ExampleTokenBucket_funnel() {
	funnels := limiter.NewGroup(limiter.GroupConfig[string]{Rate: limiter.PerSecond(0.5), Burst: 15})
	isActionAllowed := func(user, action string) bool {
		return funnels.Get(user+":"+action).TakeAt(noon, 1).OK
	}
	allowed := 0
	for range 20 {
		if isActionAllowed("laoqian", "reply") {
			allowed++
		}
	}
	fmt.Println(allowed)
	// Output: 15
}

// The five numbers of redis-cell's command
//
//	> cl.throttle laoqian:reply 15 30 60
//
// are those of a Result. Its 15 excludes the first request, so the limit is 16.
func ExampleResult() {
	reply := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Per(30, 60*time.Second), Burst: 15 + 1})
	r := reply.TakeAt(noon, 1)
	fmt.Println("allowed:", r.OK)
	fmt.Println("limit:", r.Limit)
	fmt.Println("remaining:", r.Remaining)
	fmt.Println("retry after:", r.RetryAfter)
	fmt.Println("reset after:", r.ResetAfter)
	// Output:
	// allowed: true
	// limit: 16
	// remaining: 15
	// retry after: 0s
	// reset after: 2s
}

func ExampleLimiter() {
	limits := []limiter.TimedLimiter{
		limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(2), Burst: 2}),
		limiter.NewFixedWindow(limiter.WindowConfig{Limit: 2, Window: time.Second}),
		limiter.NewSlidingLog(limiter.WindowConfig{Limit: 2, Window: time.Second}),
	}
	for _, l := range limits {
		fmt.Println(l.TakeAt(noon, 2).OK, l.TakeAt(noon, 1).RetryAfter)
	}
	// Output:
	// true 500ms
	// true 1s
	// true 1s
}

func ExampleWaitLimiter() {
	var w limiter.WaitLimiter = limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1000), Burst: 1})
	for i := range 3 {
		if err := w.Wait(context.Background(), 1); err != nil {
			return
		}
		fmt.Println("call", i)
	}
	// Output:
	// call 0
	// call 1
	// call 2
}

func ExampleReason() {
	b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: 5})
	var limited *limiter.LimitedError
	if err := b.Wait(context.Background(), 6); errors.As(err, &limited) {
		fmt.Println(limited.Reason == limiter.OverLimit, limited.RetryAfter() == limiter.Never)
	}
	// Output: true true
}

func ExampleReservation() {
	b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Per(1, time.Hour), Burst: 1})
	now := b.Reserve(1, limiter.Never)
	later := b.Reserve(1, limiter.Never)
	fmt.Println(now.Delay, later.Delay.Round(time.Minute))
	later.Refund(1)
	fmt.Println(b.Reserve(1, limiter.Never).Delay.Round(time.Minute))
	// Output:
	// 0s 1h0m0s
	// 1h0m0s
}

// The limiters differ around the end of a minute.
func ExampleWindow() {
	c := limiter.WindowConfig{Limit: 100, Window: time.Minute}
	for _, w := range []*limiter.Window{limiter.NewFixedWindow(c), limiter.NewSlidingWindow(c), limiter.NewSlidingLog(c)} {
		w.TakeAt(noon.Add(59*time.Second), 100)
		fmt.Println(w.TakeAt(noon.Add(60*time.Second), 100).OK, w.TakeAt(noon.Add(119*time.Second), 100).OK)
	}
	// Output:
	// true false
	// false false
	// false true
}

// A Joint with a name keeps statistics.
func ExampleNewJoint() {
	search := limiter.NewJoint("search",
		limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: 10}),
		limiter.NewSlidingLog(limiter.WindowConfig{Limit: 3, Window: time.Hour}),
	)
	for range 5 {
		search.Take(1)
	}
	fmt.Println(search.Stats().Allowed, search.Stats().Refused)
	// Output: 3 2
}

func ExampleJoint() {
	perUser := limiter.NewJoint("",
		limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: 2}),
		limiter.NewSlidingLog(limiter.WindowConfig{Limit: 3, Window: time.Hour}),
	)
	perUser.TakeAt(noon, 2)
	perUser.TakeAt(noon.Add(time.Second), 1)
	r := perUser.TakeAt(noon.Add(2*time.Second), 1)
	fmt.Println(r.OK, r.RetryAfter)
	// Output: false 59m58s
}

func ExampleLeakyBucket() {
	b := limiter.NewLeakyBucket(limiter.LeakyBucketConfig{Rate: limiter.PerSecond(1000), Capacity: 5})
	began := time.Now()
	for range 11 {
		if err := b.Wait(context.Background(), 1); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(time.Since(began) >= 10*time.Millisecond)
	// Output: true
}

func ExampleGroup() {
	actions := limiter.NewGroup(limiter.GroupConfig[string]{Rate: limiter.PerMinute(6), Burst: 1})
	fmt.Println(actions.Get("ann:reply").TakeAt(noon, 1).OK)
	fmt.Println(actions.Get("ann:reply").TakeAt(noon, 1).RetryAfter)
	fmt.Println(actions.Get("bob:reply").TakeAt(noon, 1).OK)
	// Output:
	// true
	// 10s
	// true
}

func ExampleTier() {
	const free, gold = -1, 0
	plans := map[string]int{"ann": gold}
	users := limiter.NewGroupAt(limiter.GroupConfig[string]{
		Rate: limiter.PerSecond(1), Burst: 1,
		Tiers: []limiter.Tier{gold: {Rate: limiter.PerSecond(100), Burst: 50}},
		TierOf: func(user string) int {
			if plan, ok := plans[user]; ok {
				return plan
			}
			return free
		},
	}, noon)
	fmt.Println(users.Get("ann").TakeAt(noon, 0).Limit, users.Get("bob").TakeAt(noon, 0).Limit)
	// Output: 50 1
}

func ExampleTokenBucketConfig_name() {
	l := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Per(1, time.Hour), Burst: 2, Name: "search"})
	l.Take(2)
	l.Take(1)
	for s, value := range l.Observe {
		if s.Instrument.Name == "weir.limiter.requests" && value > 0 {
			fmt.Println(s.Values, value)
		}
	}
	// Output:
	// [search allowed] 1
	// [search refused] 1
}

func ExampleStats() {
	l := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Per(1, time.Hour), Burst: 2, Name: "search", Shadow: true})
	for range 5 {
		l.Take(1) // always OK
	}
	stats := l.Stats()
	fmt.Println(stats.Allowed, stats.Shadowed)
	// Output: 2 3
}

// A group with a name counts the requests of all keys.
func ExampleGroup_name() {
	logins := limiter.NewGroup(limiter.GroupConfig[string]{Rate: limiter.PerMinute(1), Burst: 2, Name: "logins"})
	for _, user := range []string{"ann", "ann", "bob", "ann"} {
		logins.Get(user).Take(1)
	}
	fmt.Println(logins.Stats().Allowed, logins.Stats().Refused, logins.Len())
	// Output: 3 1 2
}

func ExampleKeyed() {
	users := limiter.NewGroup(limiter.GroupConfig[string]{Rate: limiter.Per(1, time.Hour), Burst: 1})
	daily := limiter.NewFixedWindow(limiter.WindowConfig{Limit: 100, Window: 24 * time.Hour})
	// her own limit and that of all users
	ann := limiter.NewJoint("", users.Get("ann"), daily)
	fmt.Println(ann.Take(1).OK, ann.Take(1).OK)
	// Output: true false
}

// The service has answered 503 with a Retry-After header.
func ExampleJoint_Hold() {
	bucket := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(100)})
	search := limiter.NewJoint("search", bucket)
	search.Hold(time.Minute)
	r := search.Take(1)
	fmt.Println(r.OK, r.RetryAfter > 59*time.Second)
	// Output: false true
}

// A replay of a log: TakeAt gets the time of each request.
func ExampleTimedLimiter() {
	var login limiter.TimedLimiter = limiter.NewSlidingLogAt(limiter.WindowConfig{Limit: 2, Window: time.Minute}, time.Unix(0, 0))
	for _, second := range []int64{10, 20, 30, 70} {
		fmt.Print(login.TakeAt(time.Unix(second, 0), 1).OK, " ")
	}
	// Output: true true false true
}
