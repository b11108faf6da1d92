package weir_test

import (
	"context"
	"fmt"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
)

// A model allows 60 requests and 10,000 tokens per minute. How many tokens a request uses is known
// from the answer.
func ExampleCost() {
	model := weir.Join("model", weir.Parts{
		Breaker: breaker.New("model", breaker.Config{}),
		Limiter: limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerMinute(60), Burst: 60}),
		Costs:   limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerMinute(10_000), Burst: 10_000}),
	})
	ask := func(context.Context) (tokens int, err error) { return 8_500, nil }

	for range 2 {
		ctx, cost := weir.WithCost(context.Background(), 2_000)
		used, err := weir.Do(ctx, model, ask)
		if err != nil {
			fmt.Println("refused:", weir.RetryAfter(err) > 0)
			continue
		}
		if err := cost.Settle(used); err != nil {
			fmt.Println(err)
		}
		fmt.Println("used", used)
	}
	// Output:
	// used 8500
	// refused: true
}

// Two plans of tenants, which differ in the tokens per minute. A tenant that changes its plan keeps
// its breaker.
func ExampleGroup_SetLimits() {
	plan := func(tenant string) int {
		if tenant == "large" {
			return 0
		}
		return -1
	}
	tenants := weir.NewGroup[string]("tenants", weir.GroupConfig{})
	tenants.SetLimits(nil, limiter.NewGroup(limiter.GroupConfig[string]{
		Rate: limiter.PerMinute(1_000), Burst: 1_000, // the small plan
		Tiers: []limiter.Tier{{Rate: limiter.PerMinute(100_000), Burst: 100_000}}, TierOf: plan,
	}))

	for _, tenant := range []string{"small", "large"} {
		ctx, _ := weir.WithCost(context.Background(), 5_000)
		err := tenants.Get(tenant).Run(ctx, func(context.Context) error { return nil })
		fmt.Println(tenant, err)
	}
	// Output:
	// small limiter tenants: no tokens left (limit 1000)
	// large <nil>
}
