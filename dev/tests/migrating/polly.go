package migrating

import (
	"context"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
)

//readme:polly-defaults
var likePolly = breaker.Config{
	FailureRate: 0.1,              // FailureRatio
	FailureRun:  breaker.Off,      // Polly has no runs
	MinCalls:    100,              // MinimumThroughput
	Window:      30 * time.Second, // SamplingDuration
	Cooldown:    5 * time.Second,  // BreakDuration
	Probes:      1,
	Recovery:    breaker.Off,
}

//readme:end

//readme:polly-pipeline
var pipeline = weir.Config{
	MaxConcurrent: 1000,      // AddConcurrencyLimiter
	Breaker:       likePolly, // AddCircuitBreaker
}

func pipelineGet(ctx context.Context, g *weir.Gate, get, cached fetch, id int) (*User, error) {
	return weir.DoOr(ctx, g, func(ctx context.Context) (*User, error) {
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second) // AddTimeout
		defer cancel()
		return get(ctx, id)
	}, func(ctx context.Context, _ error) (*User, error) {
		return cached(ctx, id) // AddFallback, for refused calls
	})
}

//readme:end
