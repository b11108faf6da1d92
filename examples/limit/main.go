// Command limit shows what can be done with a call that is over the limit: refuse it, let
// it wait, or divert it.
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/limiter"
)

func main() {
	ctx := context.Background()
	refuse()
	wait(ctx)
	divert(ctx)
}

func tenASecond() *limiter.TokenBucket {
	return limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(10), Burst: 3})
}

func refuse() {
	fmt.Println("Take refuses, and says when to come back:")
	bucket := tenASecond()
	for call := 1; call <= 5; call++ {
		if r := bucket.Take(1); r.OK {
			fmt.Printf("  call %d passes, %d more may\n", call, r.Remaining)
		} else {
			fmt.Printf("  call %d is refused, retry in %v\n", call, r.RetryAfter.Round(time.Millisecond))
		}
	}
}

func wait(ctx context.Context) {
	fmt.Println("Wait queues, and fails at once where the deadline cannot be met:")
	ctx, cancel := context.WithTimeout(ctx, 450*time.Millisecond)
	defer cancel()
	bucket, start := tenASecond(), time.Now()
	for call := 1; call <= 8; call++ {
		err := bucket.Wait(ctx, 1)
		at := time.Since(start).Round(10 * time.Millisecond)
		if err != nil {
			fmt.Printf("  call %d after %v: %v\n", call, at, err)
			return
		}
		fmt.Printf("  call %d after %v\n", call, at)
	}
}

func divert(ctx context.Context) {
	fmt.Println("weir.DoOr diverts:")
	prices := weir.New("prices", weir.Config{Rate: limiter.PerSecond(10), Burst: 3})
	live := func(context.Context) (string, error) { return "today's price", nil }
	cached := func(_ context.Context, refusal error) (string, error) {
		return fmt.Sprintf("yesterday's price (%v)", refusal), nil
	}
	for call := 1; call <= 5; call++ {
		price, err := weir.DoOr(ctx, prices, live, cached)
		if err != nil {
			fmt.Println(" ", err)
			return
		}
		fmt.Printf("  call %d gets %s\n", call, price)
	}
}
