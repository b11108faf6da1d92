package migrating

import (
	"context"
	"errors"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/failsafe-go/failsafe-go/ratelimiter"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/window"
)

//readme:failsafe-before
func failsafeUsers() failsafe.Executor[*User] {
	limit := ratelimiter.NewBurstyBuilder[*User](100, time.Second).
		WithMaxWaitTime(50 * time.Millisecond).
		Build()
	stop := circuitbreaker.NewBuilder[*User]().
		WithFailureRateThreshold(0.5, 20, 10*time.Second).
		WithDelay(5 * time.Second).
		WithSuccessThreshold(1).
		Build()
	return failsafe.With[*User](limit, stop)
}

func failsafeGet(ctx context.Context, e failsafe.Executor[*User], get fetch, id int) (*User, error) {
	user, err := e.WithContext(ctx).GetWithExecution(func(x failsafe.Execution[*User]) (*User, error) {
		return get(x.Context(), id)
	})
	if errors.Is(err, circuitbreaker.ErrOpen) || errors.Is(err, ratelimiter.ErrExceeded) {
		return nil, ErrUnavailable
	}
	return user, err
}

//readme:end

//readme:failsafe-after
func gateUsers() *weir.Gate {
	return weir.New("users", weir.Config{
		Rate:    limiter.PerSecond(100),
		Burst:   100,
		MaxWait: 50 * time.Millisecond,
		Breaker: breaker.Config{
			FailureRate: 0.5,
			FailureRun:  breaker.Off, // failsafe-go has no runs
			MinCalls:    20,
			Window:      10 * time.Second,
			Cooldown:    5 * time.Second,
			Probes:      1,
			Recovery:    breaker.Off,
		},
	})
}

func gateGet(ctx context.Context, g *weir.Gate, get fetch, id int) (*User, error) {
	user, err := weir.Do(ctx, g, func(ctx context.Context) (*User, error) { return get(ctx, id) })
	if errors.Is(err, weir.ErrRefused) {
		return nil, ErrUnavailable
	}
	return user, err
}

//readme:end

// likeRatio and likePeriod behave like WithFailureThresholdRatio(5, 10) and
// WithFailureThresholdPeriod(5, time.Minute). These count failures, without a minimum number of
// calls.

//readme:failsafe-ratio
var likeRatio = breaker.Config{LastCalls: 10, FailureRate: breaker.Off, Trip: fiveFailures}

var likePeriod = breaker.Config{Window: time.Minute, FailureRate: breaker.Off, Trip: fiveFailures}

func fiveFailures(c window.Counts) (reason string, trip bool) {
	return "five failures", c.Failures >= 5
}

//readme:end
