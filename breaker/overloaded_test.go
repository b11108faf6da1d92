package breaker_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
)

// busyError asks for a wait.
type busyError struct{}

func (busyError) Error() string             { return "too many calls" }
func (busyError) RetryAfter() time.Duration { return time.Minute }

// In every form of call an overload is a failure, also for the wait that the service asks for and
// for the last failures that are shown. If the caller has cancelled the call, it is ignored.
func TestAnOverloadIsAFailure(t *testing.T) {
	judge := func(err error) breaker.Outcome {
		if errors.As(err, new(busyError)) {
			return breaker.Overloaded
		}
		return breaker.DefaultClassify(err)
	}
	for name, call := range map[string]func(context.Context, *breaker.Breaker){
		"Run": func(ctx context.Context, b *breaker.Breaker) {
			_ = b.Run(ctx, func(context.Context) error { return busyError{} })
		},
		"DoResult": func(ctx context.Context, b *breaker.Breaker) {
			_, _ = breaker.DoResult(ctx, b, func(context.Context) (int, error) { return 0, busyError{} },
				func(_ int, err error) breaker.Outcome { return judge(err) })
		},
		"Done": func(ctx context.Context, b *breaker.Breaker) {
			p, err := b.Allow()
			require.NoError(t, err)
			p.Done(ctx, busyError{})
		},
	} {
		b := breaker.New("b", breaker.Config{Classify: judge, ConsecutiveFailures: 1, Cooldown: time.Second})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		call(ctx, b)
		require.Equal(t, breaker.Closed, b.State(), name)
		call(t.Context(), b)
		require.Equal(t, int64(1), b.Totals().Failures, name)
		require.Equal(t, breaker.Open, b.State(), name)
		_, err := b.Allow()
		var open *breaker.OpenError
		require.ErrorAs(t, err, &open)
		require.Greater(t, open.RetryAfter(), 50*time.Second, name)
		require.Contains(t, b.Explain(), "too many calls", name)
	}
	b := breaker.New("b", breaker.Config{})
	p, err := b.Allow()
	require.NoError(t, err)
	p.Record(bg(), nil, breaker.Overloaded)
	require.Equal(t, int64(1), b.Totals().Failures)
	classify := breaker.FailOn(context.DeadlineExceeded)
	require.Equal(t, breaker.Success, classify(busyError{}))
}
