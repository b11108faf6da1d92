package weir_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
)

// byStatus judges a call by its value, like the status of an HTTP response.
func byStatus(status int, err error) breaker.Outcome {
	switch {
	case err != nil || status >= 500:
		return breaker.Failure
	case status == 499:
		return breaker.Ignored
	}
	return breaker.Success
}

// retryAfterError is an error with a RetryAfter method.
type retryAfterError time.Duration

func (retryAfterError) Error() string               { return "busy" }
func (a retryAfterError) RetryAfter() time.Duration { return time.Duration(a) }

func TestDoResultJudgesByValueAndError(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		err    error
		want   string // successes, failures, ignored
	}{
		"a good status":                {200, nil, "1 0 0"},
		"a bad status":                 {503, nil, "0 1 0"},
		"a status that says nothing":   {499, nil, "0 0 1"},
		"an error":                     {0, errDown, "0 1 0"},
		"a refusal of an inner guard":  {0, fmt.Errorf("inner: %w", weir.ErrRefused), "0 0 1"},
		"an error that asks to wait":   {0, retryAfterError(time.Hour), "0 1 0"},
		"an error whose wait is below": {0, retryAfterError(-1), "0 1 0"},
	} {
		g := weir.New("g", weir.Config{Breaker: breaker.Config{Classify: func(error) breaker.Outcome { panic("asked") }}})
		status, err := weir.DoResult(bg(), g, func(context.Context) (int, error) { return c.status, c.err }, byStatus)
		require.Equal(t, c.status, status, name)
		require.Equal(t, c.err, err, name)
		got := g.Totals()
		require.Equal(t, c.want, fmt.Sprint(got.Successes, got.Failures, got.Ignored), name)
	}
}

func TestDoResultIgnoresCancelledCalls(t *testing.T) {
	g := weir.New("g", weir.Config{})
	ctx, cancel := context.WithCancel(bg())
	_, err := weir.DoResult(ctx, g, func(context.Context) (int, error) { cancel(); return 0, errDown }, byStatus)
	require.ErrorIs(t, err, errDown)
	require.EqualValues(t, 1, g.Totals().Ignored)
}

// A failure with a RetryAfter method extends the cooldown.
func TestDoResultObeysTheRetryAfterOfAFailure(t *testing.T) {
	g := weir.New("g", weir.Config{Breaker: breaker.Config{ConsecutiveFailures: 1, MaxRetryAfter: time.Hour}})
	_, _ = weir.DoResult(bg(), g, func(context.Context) (int, error) { return 0, retryAfterError(time.Hour) }, byStatus)
	err := g.Run(bg(), succeed)
	require.ErrorIs(t, err, breaker.ErrOpen)
	require.Greater(t, weir.RetryAfter(err), 59*time.Minute)
}

func TestDoResultOfAPanickingFunction(t *testing.T) {
	g := weir.New("g", weir.Config{})
	require.PanicsWithValue(t, "boom", func() {
		_, _ = weir.DoResult(bg(), g, func(context.Context) (int, error) { panic("boom") }, byStatus)
	})
	require.EqualValues(t, 1, g.Totals().Failures)
	require.PanicsWithValue(t, "judge", func() {
		_, _ = weir.DoResult(bg(), g, func(context.Context) (int, error) { return 0, nil },
			func(int, error) breaker.Outcome { panic("judge") })
	})
	require.EqualValues(t, 1, g.Totals().Ignored, "a judge that panics gives no outcome")
	ctx, cancel := context.WithCancel(bg())
	require.Panics(t, func() {
		_, _ = weir.DoResult(ctx, g, func(context.Context) (int, error) { cancel(); panic("boom") }, byStatus)
	})
	require.EqualValues(t, 2, g.Totals().Ignored, "the caller cancelled")
}

func TestDoResultAllocatesNothing(t *testing.T) {
	g := weir.New("g", weir.Config{Rate: limiter.PerSecond(1e6), Burst: 1 << 30})
	fn := func(context.Context) (int, error) { return 200, nil }
	require.Zero(t, testing.AllocsPerRun(1000, func() { _, _ = weir.DoResult(bg(), g, fn, byStatus) }))
}

// A response can be a failure although there is no error.
func ExampleDoResult() {
	shop := weir.New("shop", weir.Config{Breaker: breaker.Config{ConsecutiveFailures: 1}})
	get := func(context.Context) (int, error) { return 503, nil }
	for range 2 {
		status, err := weir.DoResult(context.Background(), shop, get, func(status int, err error) breaker.Outcome {
			if err != nil || status >= 500 {
				return breaker.Failure
			}
			return breaker.Success
		})
		fmt.Println(status, errors.Is(err, breaker.ErrOpen))
	}
	// Output:
	// 503 false
	// 0 true
}
