package weir_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
)

func TestDoOrCallsFallbackForRefusedCalls(t *testing.T) {
	g := weir.New("g", weir.Config{Breaker: breaker.Config{MinCalls: 1, Cooldown: time.Hour}})
	call := func(err error) func(context.Context) (string, error) {
		return func(context.Context) (string, error) { return "service", err }
	}
	cached := func(_ context.Context, refusal error) (string, error) {
		require.ErrorIs(t, refusal, breaker.ErrOpen)
		return "cache", nil
	}
	v, err := weir.DoOr(bg(), g, call(nil), cached)
	require.NoError(t, err)
	require.Equal(t, "service", v)
	v, err = weir.DoOr(bg(), g, call(errDown), cached)
	require.Equal(t, errDown, err, "the fallback is not called for a failure")
	require.Equal(t, "service", v)
	v, err = weir.DoOr(bg(), g, call(nil), cached)
	require.NoError(t, err)
	require.Equal(t, "cache", v)

	cancelled, cancel := context.WithCancel(bg())
	cancel()
	v, err = weir.DoOr(cancelled, g, call(nil), cached)
	require.Equal(t, context.Canceled, err)
	require.Empty(t, v)
}

func TestDoneContextTakesNothing(t *testing.T) {
	g := weir.New("g", weir.Config{Rate: limiter.Per(1, time.Hour), Burst: 3, MaxWait: time.Hour})
	ctx, cancel := context.WithCancel(bg())
	cancel()
	require.Equal(t, context.Canceled, g.Run(ctx, succeed))
	require.Equal(t, 3, g.Limiter().Take(0).Remaining)
	require.Zero(t, g.Admissions())
	require.Zero(t, g.Totals())
}

func TestPanickingAndNilFunctions(t *testing.T) {
	g := weir.New("g", weir.Config{Rate: limiter.Per(1, time.Hour), Burst: 3})
	const missing = "weir: the function to call is nil"
	require.PanicsWithValue(t, missing, func() { _ = g.Run(bg(), nil) })
	require.PanicsWithValue(t, missing, func() { _, _ = weir.Do[int](bg(), g, nil) })
	require.PanicsWithValue(t, missing, func() {
		_, _ = weir.DoOr(bg(), g, func(context.Context) (int, error) { return 0, nil }, nil)
	})
	require.PanicsWithValue(t, missing, func() { _, _ = weir.DoResult(bg(), g, nil, byStatus) })
	require.PanicsWithValue(t, missing, func() {
		_, _ = weir.DoResult(bg(), g, func(context.Context) (int, error) { return 0, nil }, nil)
	})
	require.Equal(t, 3, g.Limiter().Take(0).Remaining)
	require.PanicsWithValue(t, "boom", func() { _ = g.Run(bg(), func(context.Context) error { panic("boom") }) })
	require.PanicsWithValue(t, "boom", func() {
		_, _ = weir.Do(bg(), g, func(context.Context) (int, error) { panic("boom") })
	})
	require.Equal(t, int64(2), g.Breaker().Counts().Failures)
}

func TestRetryAfterReturnsTheWait(t *testing.T) {
	require.Zero(t, weir.RetryAfter(nil))
	require.Zero(t, weir.RetryAfter(io.EOF))
	e := &limiter.LimitedError{Until: time.Now().Add(time.Hour)}
	wait := weir.RetryAfter(errors.Join(io.EOF, fmt.Errorf("pay: %w", e)))
	require.InDelta(t, float64(time.Hour), float64(wait), float64(time.Minute))
	require.Equal(t, limiter.Never, weir.RetryAfter(&limiter.LimitedError{}))
}

// zeroRetryAfter is a refusal whose RetryAfter is 0.
type zeroRetryAfter struct{}

func (zeroRetryAfter) Take(n int) limiter.Result { return limiter.Result{OK: n == 0, Limit: 1} }

// A caller that waits for RetryAfter and retries does not spin.
func TestRetryAfterOfARefusalIsNeverZero(t *testing.T) {
	g := weir.Join("g", weir.Parts{Breaker: breaker.New("b", breaker.Config{}), Limiter: zeroRetryAfter{}})
	for name, err := range map[string]error{
		"a limiter that does not know": g.Run(bg(), succeed),
		"a limit whose time has come":  &limiter.LimitedError{Until: time.Now().Add(-time.Hour)},
		"a forced-open breaker":        weir.New("g", weir.Config{Breaker: breaker.Config{Initial: breaker.ForcedOpen}}).Run(bg(), succeed),
	} {
		require.ErrorIs(t, err, weir.ErrRefused, name)
		require.GreaterOrEqual(t, weir.RetryAfter(err), time.Millisecond, name)
	}
	require.Zero(t, weir.RetryAfter(retryAfterError(0)), "not a refusal")
	require.Equal(t, time.Microsecond, weir.RetryAfter(retryAfterError(time.Microsecond)))
}

func TestConfigValidateNamesAllFaults(t *testing.T) {
	for _, c := range []struct {
		config weir.Config
		want   string
	}{
		{weir.Config{MaxWait: -1}, "weir: MaxWait is -1ns, must be at least 0"},
		{weir.Config{MaxWait: 1}, "weir: MaxWait is 1ns, must be 0 without a Rate, a MaxConcurrent and Adaptive"},
		{weir.Config{Adaptive: true, MaxConcurrent: -1}, "weir: MaxConcurrent is -1, must be between 1 and 1000000 (or 0 for no bound)"},
		{weir.Config{Adaptive: true, MaxConcurrent: 1_000_001}, "weir: MaxConcurrent is 1000001, must be between 1 and 1000000 (or 0 for no bound)"},
		{weir.Config{MaxConcurrent: -1}, "weir: MaxConcurrent is -1, must be between 1 and 1000000 (or 0 for no bound)"},
		{weir.Config{MaxConcurrent: 1_000_001, Burst: 1}, "weir: MaxConcurrent is 1000001, must be between 1 and 1000000 (or 0 for no bound)\nweir: Burst is 1, must be 0 without a Rate"},
		{weir.Config{Burst: 1}, "weir: Burst is 1, must be 0 without a Rate"},
		{weir.Config{Breaker: breaker.Config{FailureRate: 2}}, "weir: Breaker: breaker: FailureRate is 2, must be above 0 and at most 1, or Off"},
	} {
		require.EqualError(t, c.config.Validate(), c.want)
		require.PanicsWithError(t, c.want, func() { weir.New("g", c.config) })
	}
	for _, bad := range []limiter.Rate{limiter.PerSecond(math.NaN()), limiter.PerSecond(-1), limiter.PerSecond(math.Inf(1)), limiter.PerSecond(0)} {
		require.ErrorContains(t, weir.Config{Rate: bad}.Validate(), "weir: limiter: ")
	}
	require.NoError(t, weir.Config{}.Validate())
}
