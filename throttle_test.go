package weir_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/throttle"
	"github.com/weir-go/weir/window"
)

// newThrottledGate returns a gate of which only the throttle refuses calls, and the throttle.
func newThrottledGate(l limiter.Limiter) (*weir.Gate, *throttle.Throttle) {
	th := throttle.New("t", throttle.Config{MaxRefusal: 1})
	return weir.Join("g", weir.Parts{
		Breaker: breaker.New("g", breaker.Config{FailureRate: breaker.Off}), Throttle: th, Limiter: l,
	}), th
}

func TestThrottleRefusesCallsOfAGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bucket := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Per(1, time.Hour), Burst: 1_000_000})
		g, th := newThrottledGate(bucket)
		made := int64(0)
		for range 1000 {
			err := g.Run(bg(), func(context.Context) error { made++; return errDown })
			if err != errDown { //nolint:errorlint // as it is
				require.ErrorIs(t, err, throttle.ErrRefused)
				require.ErrorIs(t, err, weir.ErrRefused)
				require.Equal(t, time.Second, weir.RetryAfter(err))
			}
		}
		require.Equal(t, window.Totals{Failures: made, Refused: 1000 - made, ConsecutiveFailures: made}, th.Totals())
		require.Positive(t, th.Totals().Refused)
		require.GreaterOrEqual(t, made, int64(20))
		require.Equal(t, made, g.Totals().Failures)
		require.Zero(t, g.Totals().Refused, "the breaker has refused no call")
		require.Equal(t, 1_000_000-int(made), bucket.Take(0).Remaining, "calls that the throttle refuses spend no token")
	})
}

func TestThrottleRecordsEachCallOnce(t *testing.T) {
	gone, cancel := context.WithCancel(bg())
	for name, call := range map[string]func(*weir.Gate){
		"Run": func(g *weir.Gate) { _ = g.Run(bg(), fail) },
		"Do":  func(g *weir.Gate) { _, _ = weir.Do(bg(), g, func(context.Context) (int, error) { return 0, errDown }) },
		"DoOr": func(g *weir.Gate) {
			_, _ = weir.DoOr(bg(), g, func(context.Context) (int, error) { return 0, errDown }, noFallback)
		},
		"a panic": func(g *weir.Gate) {
			defer func() { _ = recover() }()
			_ = g.Run(bg(), func(context.Context) error { panic("boom") })
		},
		"Record": func(g *weir.Gate) {
			p, _ := g.Allow(bg())
			p.Record(breaker.Failure)
			p.Record(breaker.Success)
		},
		"Done": func(g *weir.Gate) {
			p, _ := g.Allow(bg())
			defer p.Record(breaker.Success)
			p.Done(bg(), errDown)
		},
		"late, as the breaker was reset": func(g *weir.Gate) {
			p, _ := g.Allow(bg())
			g.Breaker().Force(breaker.ForcedOpen)
			p.Record(breaker.Failure)
		},
	} {
		for _, l := range []limiter.Limiter{nil, limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1)})} {
			g, th := newThrottledGate(l)
			call(g)
			require.Equal(t, window.Totals{Failures: 1, ConsecutiveFailures: 1}, th.Totals(), name)
		}
	}
	g, th := newThrottledGate(nil)
	_ = g.Run(gone, func(context.Context) error { cancel(); return errDown })
	require.Equal(t, window.Totals{Ignored: 1}, th.Totals())
}

func TestThrottleDoesNotCountCallsRefusedByOthers(t *testing.T) {
	g, th := newThrottledGate(limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Per(1, time.Hour)}))
	require.NoError(t, g.Run(bg(), succeed))
	require.ErrorIs(t, g.Run(bg(), succeed), limiter.ErrLimited)
	g.Breaker().Force(breaker.ForcedOpen)
	require.ErrorIs(t, g.Run(bg(), succeed), breaker.ErrOpen)
	require.Equal(t, window.Totals{Successes: 1}, th.Totals())
}

func TestGateWithAThrottleAllocatesNothing(t *testing.T) {
	g, _ := newThrottledGate(limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(2e9), Burst: 1 << 30}))
	require.Zero(t, testing.AllocsPerRun(1000, func() { _ = g.Run(bg(), fail) }))
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		if p, err := g.Allow(bg()); err == nil {
			p.Record(breaker.Success)
		}
	}))
}

func noFallback(context.Context, error) (int, error) { return 0, nil }
