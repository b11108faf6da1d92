package limiter_test

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-go/weir/limiter"
)

// A limit for all calls with statistics, a limit per user, and a call that waits for its token.
func Example() {
	signups := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerMinute(30), Burst: 2, Name: "signups"})
	for range 3 {
		if r := signups.Take(1); !r.OK {
			fmt.Println("too many, try again in", r.RetryAfter.Round(time.Second))
		}
	}
	fmt.Println(signups.Stats().Refused, "refused")

	users := limiter.NewGroup(limiter.GroupConfig[string]{Rate: limiter.PerSecond(5), Burst: 1})
	fmt.Println(users.Get("ann").Take(1).OK, users.Get("ann").Take(1).OK, users.Get("bob").Take(1).OK)

	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	fmt.Println(users.Get("ann").Wait(ctx, 1)) // in 200 ms
	// Output:
	// too many, try again in 2s
	// 1 refused
	// true false true
	// <nil>
}
