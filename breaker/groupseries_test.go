package breaker_test

import (
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
)

// A key that is in use gets the series of a key that is idle. None of the sums falls or jumps then,
// and each call is in one of the sums.
func TestGroupReassignsTheSeriesOfIdleKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := breaker.NewGroup[string]("g", breaker.GroupConfig{MaxSeries: 2, Breaker: breaker.Config{Latency: true}})
		var m counterChecker
		runs := func(keys ...string) {
			for _, key := range keys {
				_ = g.Get(key).Run(bg(), succeed)
			}
		}
		runs("scanner 1", "scanner 2", "tenant 1", "tenant 2", "tenant 2")
		lines := m.read(t, g, 0, 4)
		require.InDelta(t, 1, lines["calls success scanner 1"], 0)
		require.InDelta(t, 3, lines["calls success _other"], 0)
		for range 9 {
			time.Sleep(time.Minute)
			runs("tenant 1", "tenant 2")
			lines = m.read(t, g, 2, 4)
			require.Contains(t, lines, "calls success scanner 1")
		}
		time.Sleep(time.Minute)
		runs("tenant 1", "tenant 2")
		lines = m.read(t, g, 2, 4)
		require.NotContains(t, lines, "calls success scanner 1")
		require.Zero(t, lines["calls success tenant 1"], "what it has counted before is in the sum of the others")
		require.InDelta(t, 3+20, lines["calls success _other"], 0)
		time.Sleep(time.Minute)
		runs("tenant 1", "tenant 2", "scanner 1", "scanner 1")
		lines = m.read(t, g, 4, 4)
		require.InDelta(t, 1, lines["calls success tenant 1"], 0)
		require.InDelta(t, 1, lines["calls success tenant 2"], 0)
		require.InDelta(t, 3+20+2, lines["calls success _other"], 0, "the first call of scanner 1 was in its own series")
		require.InDelta(t, 60, lines["state_time closed tenant 1"], 1e-6)

		counts := map[string]int64{}
		for s, h := range g.Histograms {
			counts[s.Values[1]] = h.Count()
		}
		require.Equal(t, map[string]int64{"tenant 1": 1, "tenant 2": 1, "_other": 25}, counts)
	})
}

// A breaker that was opened and not called again loses its series.
func TestGroupReassignsTheSeriesOfAbandonedOpenBreakers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := breaker.NewGroup[string]("g", breaker.GroupConfig{MaxSeries: 2, Breaker: breaker.Config{ConsecutiveFailures: 1}})
		var m counterChecker
		for _, key := range []string{"scanner 1", "scanner 2", "scanner 3", "scanner 4"} {
			_ = g.Get(key).Run(bg(), fail)
		}
		_ = g.Get("tenant 1").Run(bg(), succeed)
		g.Get("tenant 2").Force(breaker.ForcedOpen)
		require.Contains(t, m.read(t, g, 0, 5), "calls failure scanner 1")
		for range 9 {
			time.Sleep(time.Minute)
			_ = g.Get("tenant 1").Run(bg(), succeed)
			require.ErrorIs(t, g.Get("tenant 2").Run(bg(), succeed), breaker.ErrOpen)
			require.Contains(t, m.read(t, g, 2, 5), "calls failure scanner 1")
		}
		time.Sleep(time.Minute)
		_ = g.Get("tenant 1").Run(bg(), succeed)
		require.ErrorIs(t, g.Get("tenant 2").Run(bg(), succeed), breaker.ErrOpen)
		lines := m.read(t, g, 2, 5)
		require.Contains(t, lines, "calls success tenant 1")
		require.Contains(t, lines, "calls refused tenant 2", "its calls are refused, and it is in use")
		require.NotContains(t, lines, "calls failure scanner 1")
	})
}

// A key with series of its own is not evicted until it was idle for ten minutes and a key in use
// gets its series.
func TestGroupKeepsAKeyWithSeriesOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := breaker.NewGroup[string]("g", breaker.GroupConfig{MaxKeys: 2, MaxSeries: 1, Breaker: breaker.Config{Latency: true}})
		var m counterChecker
		a := g.Get("a")
		_ = a.Run(bg(), succeed)
		m.read(t, g, 1, 2)
		for range 9 {
			time.Sleep(time.Minute)
			addKeys(g, time.Now(), 20)
			_ = g.Get("b").Run(bg(), succeed)
			lines := m.read(t, g, 1, 2)
			require.InDelta(t, 1, lines["calls success a"], 0)
			require.InDelta(t, 1, lines["state closed a"], 0)
		}
		require.Same(t, a, maps.Collect(g.All())["a"])
		time.Sleep(time.Minute)
		_ = g.Get("b").Run(bg(), succeed)
		require.NotContains(t, m.read(t, g, 1, 2), "calls success a")
		time.Sleep(time.Minute)
		addKeys(g, time.Now(), 20)
		require.NotContains(t, maps.Collect(g.All()), "a")
		lines := m.read(t, g, 0, 2)
		require.InDelta(t, 0, lines["calls success b"], 0)
		require.InDelta(t, 10, lines["calls success _other"], 0, "those of b, of which the last was not shown yet")
	})
}

func TestGroupShowsAHundredKeysByDefault(t *testing.T) {
	for maxKeys, want := range map[int]int{0: 100, 1000: 100, 20: 10} {
		g := breaker.NewGroup[int]("g", breaker.GroupConfig{MaxKeys: maxKeys})
		for key := range 300 {
			_ = g.Get(key).Run(bg(), succeed)
		}
		shown := map[string]bool{}
		for s := range g.Observe {
			if s.Instrument.Name == "weir.breaker.slow_calls" {
				shown[s.Values[1]] = true
			}
		}
		delete(shown, "_other")
		require.Len(t, shown, want, "MaxKeys %d", maxKeys)
	}
}
