package limiter_test

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-go/weir/limiter"
)

// A language model may use 10,000 tokens per minute. What an answer uses is known when it is there.
func ExampleReservation_Settle() {
	tokens := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerMinute(10_000), Burst: 10_000})
	r := limiter.Reserve(tokens, 3000)
	// ... ask the model, which uses fewer
	r.Settle(2000)
	fmt.Println(tokens.Take(0).Remaining/1000, "thousand are left")

	r = limiter.Reserve(tokens, 3000)
	// ... ask the model, which uses more
	r.Settle(9000)
	fmt.Println(tokens.Take(1).RetryAfter.Round(time.Second))
	// Output:
	// 8 thousand are left
	// 6s
}

// A job that does not say within an hour what it has used is charged for what it may have used.
func ExampleReservation_SettleAfter() {
	credits := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Per(100, 24*time.Hour), Burst: 100})
	job := limiter.Reserve(credits, 10)
	job.SettleAfter(time.Hour, 50)
	// ... the job says in time what it has used
	job.Settle(20)
	fmt.Println(credits.Take(0).Remaining)
	// Output: 80
}

// A provider limits the requests per minute, and the tokens that they use.
func ExamplePerRequest() {
	requests := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerMinute(60), Burst: 60})
	tokens := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerMinute(10_000), Burst: 10_000})
	model := limiter.NewJoint("model", limiter.PerRequest(requests), tokens)
	fmt.Println(model.Take(3000).OK, model.Take(4000).OK, model.Take(4000).OK)
	// Output: true true false
}

// A batch waits until its rows may be written, and gives back what it has not written.
func ExampleWaitReserve() {
	rows := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(10_000), Burst: 500})
	r, err := limiter.WaitReserve(context.Background(), rows, 500)
	if err != nil {
		fmt.Println(err)
		return
	}
	written := 100
	r.Settle(written)
	fmt.Println(r.OK, rows.Take(0).Remaining >= 400)
	// Output: true true
}

// The estimate of a prompt is what nine of ten answers of the model have used.
func ExampleEstimates() {
	estimates := limiter.NewEstimates[string](limiter.EstimatesConfig{Quantile: 0.9, First: 2000, Most: 10_000})
	tokens := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerMinute(10_000), Burst: 10_000})
	for _, used := range []int{512, 512, 1024, 256} {
		r := limiter.Reserve(tokens, estimates.Of("small"))
		// ... ask the model
		estimates.Record("small", used)
		r.Settle(used)
	}
	fmt.Println(estimates.Of("small"), estimates.Of("large"))
	// Output: 1024 2000
}

func ExampleEstimatesConfig() {
	fmt.Println(limiter.EstimatesConfig{Quantile: 95, First: 2000, Most: 10_000}.Validate())
	// Output: limiter: Quantile is 95, must be above 0 and at most 1
}
