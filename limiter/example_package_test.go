package limiter_test

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-go/weir/limiter"
)

// A limit for all calls with statistics, a limit per user, and a call that waits for its token.
func Example() {
	signups := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Per(30, time.Hour), Burst: 2, Name: "signups"})
	for range 3 {
		if r := signups.Take(1); !r.OK {
			fmt.Println("too many, try again in", r.RetryAfter.Round(time.Minute))
		}
	}
	fmt.Println(signups.Stats().Refused, "refused")

	users := limiter.NewGroup(limiter.GroupConfig[string]{Rate: limiter.PerMinute(5), Burst: 1})
	fmt.Println(users.Get("ann").Take(1).OK, users.Get("ann").Take(1).OK, users.Get("bob").Take(1).OK)

	uploads := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(5), Burst: 1})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	fmt.Println(uploads.Wait(ctx, 1), uploads.Wait(ctx, 1)) // the second one waits for 200 ms
	// Output:
	// too many, try again in 2m0s
	// 1 refused
	// true false true
	// <nil> <nil>
}
