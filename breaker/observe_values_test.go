package breaker_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/internal/instrument"
)

func TestTheTimeInEachStateAddsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("b", breaker.Config{Recovery: breaker.Off})
		time.Sleep(2 * time.Second)
		open(t, b)
		time.Sleep(6 * time.Second) // the cooldown, and five seconds more
		run(t, b, 3, succeed)
		time.Sleep(3 * time.Second)
		for range 2 { // observing the breaker changes nothing
			seen := observe(b)
			require.InDelta(t, 2+3, seen["state_time closed"], 1e-9)
			require.InDelta(t, 1, seen["state_time open"], 1e-9)
			require.InDelta(t, 5, seen["state_time half_open"], 1e-9)
		}
	})
}

func TestTheSameStateAgainIsNotATransition(t *testing.T) {
	b := breaker.New("b", breaker.Config{})
	b.Reset()
	require.Zero(t, observe(b)["transitions closed"])
	b.OpenFor(time.Hour)
	b.OpenFor(2 * time.Hour)
	seen := observe(b)
	require.InDelta(t, 1, seen["transitions open"], 0)
	require.InDelta(t, 1, seen["state open"], 0)
	require.Greater(t, seen["open.remaining "], 3700.0, "but the time starts again")
}

func TestTheShareOfSlowCallsIsShownWhereThereAreAny(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("b", breaker.Config{SlowCall: time.Second, SlowRate: 1, MinCalls: 4})
		run(t, b, 3, succeed)
		require.NotContains(t, observe(b), "window.slow_ratio ", "too few calls")
		run(t, b, 1, func(ctx) error { time.Sleep(2 * time.Second); return nil })
		require.InDelta(t, 0.25, observe(b)["window.slow_ratio "], 0)
		require.NoError(t, b.Reconfigure(breaker.Config{SlowCall: time.Second, SlowRate: breaker.Off, MinCalls: 4}))
		require.NotContains(t, observe(b), "window.slow_ratio ", "nobody asks")
	})
}

func TestOnlyAnOpenBreakerWithADeadlineShowsTheTimeLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const left = "open.remaining "
		b := breaker.New("b", breaker.Config{HalfOpenTimeout: time.Minute})
		require.NotContains(t, observe(b), left, "closed")
		b.OpenFor(7 * time.Second)
		require.InDelta(t, 7, observe(b)[left], 1e-9)
		time.Sleep(8 * time.Second)
		require.NotContains(t, observe(b), left, "half-open is due")
		holdPermits(t, b, 1)
		require.NotContains(t, observe(b), left, "half-open")
		b.OpenFor(math.MaxInt64)
		require.NotContains(t, observe(b), left, "open for ever")
	})
}

func TestAGroupShowsTheLatencyOfItsFirstKeysAndOfTheOthersTogether(t *testing.T) {
	g := breaker.NewGroup[string]("g", breaker.GroupConfig{Breaker: breaker.Config{Latency: true}, MaxSeries: 2})
	for n, key := range []string{"a", "b", "c"} {
		run(t, g.Get(key), n+1, succeed)
	}
	shown := map[string]int64{}
	for s, h := range g.Histograms {
		require.Equal(t, instrument.BreakerCallDuration, s.Instrument)
		require.Equal(t, "g", s.Values[0])
		shown[s.Values[1]] += h.Count()
	}
	require.Equal(t, map[string]int64{"a": 1, "b": 2, "_other": 3}, shown)
}

func TestTheSeriesOfAGroupBeganWhenItDid(t *testing.T) {
	for s := range breaker.NewGroupAt[string]("g", breaker.GroupConfig{}, t0).Observe {
		require.True(t, s.Created.Equal(t0), "%s: %v", s.Instrument.Name, s.Created)
	}
}
