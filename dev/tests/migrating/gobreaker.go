package migrating

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/breaker/breakerlog"
	"github.com/weir-go/weir/window"
)

//readme:gobreaker-before
func gobreakerUsers() *gobreaker.CircuitBreaker[*User] {
	return gobreaker.NewCircuitBreaker[*User](gobreaker.Settings{
		Name:         "users",
		Interval:     10 * time.Second,
		BucketPeriod: time.Second,
		Timeout:      5 * time.Second,
		MaxRequests:  1,
		ReadyToTrip: func(c gobreaker.Counts) bool {
			return c.Requests >= 20 && float64(c.TotalFailures)/float64(c.Requests) >= 0.5
		},
		IsSuccessful: func(err error) bool { return err == nil || errors.Is(err, ErrNotFound) },
		IsExcluded:   func(err error) bool { return errors.Is(err, context.Canceled) },
		OnStateChange: func(name string, from, to gobreaker.State) {
			slog.Warn("breaker", "name", name, "from", from.String(), "to", to.String())
		},
	})
}

func gobreakerGet(ctx context.Context, b *gobreaker.CircuitBreaker[*User], get fetch, id int) (*User, error) {
	user, err := b.Execute(func() (*User, error) { return get(ctx, id) })
	if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
		return nil, ErrUnavailable
	}
	return user, err
}

//readme:end

//readme:gobreaker-after
func breakerUsers() *breaker.Breaker {
	return breaker.New("users", breaker.Config{
		Window:      10 * time.Second,
		Buckets:     10,
		Cooldown:    5 * time.Second,
		Probes:      1,
		Recovery:    breaker.Off,
		MinCalls:    20,
		FailureRate: 0.5,
		FailureRun:  breaker.Off,                 // gobreaker has no runs
		Classify:    breaker.Accept(ErrNotFound), // cancelled calls are always ignored
		OnChange:    breakerlog.Changes(slog.Default()),
	})
}

func breakerGet(ctx context.Context, b *breaker.Breaker, get fetch, id int) (*User, error) {
	user, err := breaker.Do(ctx, b, func(ctx context.Context) (*User, error) { return get(ctx, id) })
	if errors.Is(err, breaker.ErrOpen) {
		return nil, ErrUnavailable
	}
	return user, err
}

//readme:end

// likeGobreaker has the defaults of gobreaker: the breaker opens at the sixth consecutive failure,
// for one minute, and one failed probe opens it again.

//readme:gobreaker-defaults
var likeGobreaker = breaker.Config{
	ConsecutiveFailures: 6,           // ReadyToTrip: c.ConsecutiveFailures > 5
	FailureRate:         breaker.Off, // any failed probe opens it again
	Cooldown:            time.Minute,
	Probes:              1,
	Recovery:            breaker.Off,
}

//readme:end

// gobreakerRun opens at five failures in a row if no end of an interval lies between them.

//readme:gobreaker-run
var gobreakerRun = gobreaker.Settings{
	Interval:    10 * time.Second, // clears the counts
	ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= 5 },
}

var breakerRun = breaker.Config{
	Window:      10 * time.Second,
	FailureRate: breaker.Off,
	Trip: func(c window.Counts) (reason string, trip bool) {
		// c.Failures counts the failures in the window, c.ConsecutiveFailures those of any age.
		return "5 failures in a row within 10s", min(c.ConsecutiveFailures, c.Failures) >= 5
	},
	Recovery: breaker.Off,
}

//readme:end

//readme:gobreaker-errors

// gobreakerError returns the error of gobreaker for a refusal of weir's breaker, and any other
// error as it is.
func gobreakerError(err error) error {
	refusal, refused := errors.AsType[*breaker.OpenError](err)
	switch {
	case !refused:
		return err
	case refusal.State == breaker.HalfOpen || refusal.State == breaker.Recovering:
		return gobreaker.ErrTooManyRequests
	default:
		return gobreaker.ErrOpenState
	}
}

//readme:end
