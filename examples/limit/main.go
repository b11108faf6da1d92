// Command limit shows three ways to handle a call over the limit: refuse it, let it wait, or use a
// fallback.
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
	fallback(ctx)
}

func tenPerSecond() *limiter.TokenBucket {
	return limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(10), Burst: 3})
}

func refuse() {
	fmt.Println("Take refuses, and says when to retry:")
	bucket := tenPerSecond()
	for call := 1; call <= 5; call++ {
		if r := bucket.Take(1); r.OK {
			fmt.Printf("  call %d is allowed, %d tokens remain\n", call, r.Remaining)
		} else {
			fmt.Printf("  call %d is refused, retry in %v\n", call, r.RetryAfter.Round(time.Millisecond))
		}
	}
}

func wait(ctx context.Context) {
	fmt.Println("Wait joins a queue, and fails at once if it cannot meet the deadline:")
	ctx, cancel := context.WithTimeout(ctx, 450*time.Millisecond)
	defer cancel()
	bucket, start := tenPerSecond(), time.Now()
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

func fallback(ctx context.Context) {
	fmt.Println("weir.DoOr calls a fallback:")
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
