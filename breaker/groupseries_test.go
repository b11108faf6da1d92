package breaker_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
)

// A key with series of its own that is idle for ten minutes is evicted, and the next new key gets
// series. A key that is among the others stays there. No counter falls or jumps.
func TestGroupGivesTheSeriesOfAnIdleKeyToTheNextNewKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := breaker.NewGroup[string]("g", breaker.GroupConfig{MaxSeries: 2, Breaker: breaker.Config{Latency: true}})
		var m counterChecker
		runs := func(keys ...string) {
			for _, key := range keys {
				_ = g.Get(key).Run(bg(), succeed)
			}
		}
		runs("scanner", "tenant 1", "tenant 2", "tenant 2")
		lines := m.read(t, g, 0, 3)
		require.InDelta(t, 1, lines["calls success scanner"], 0)
		require.InDelta(t, 1, lines["calls success tenant 1"], 0)
		require.InDelta(t, 2, lines["calls success _other"], 0)
		for range 11 { // first the group notes that the key was looked up
			require.Contains(t, m.read(t, g, 2, 3), "calls success scanner")
			time.Sleep(time.Minute)
			runs("tenant 1", "tenant 2")
		}
		m.read(t, g, 2, 3)
		require.Equal(t, 2, g.Len())
		runs("tenant 3", "tenant 3", "scanner")
		lines = m.read(t, g, 3, 4)
		require.InDelta(t, 12, lines["calls success tenant 1"], 0)
		require.InDelta(t, 2, lines["calls success tenant 3"], 0)
		require.NotContains(t, lines, "calls success tenant 2")
		require.NotContains(t, lines, "calls success scanner")
		require.InDelta(t, 2+11+1, lines["calls success _other"], 0)

		counts := map[string]int64{}
		for s, h := range g.Histograms {
			counts[s.Values[1]] = h.Count()
		}
		require.Equal(t, map[string]int64{"tenant 1": 12, "tenant 3": 2, "_other": 14}, counts)
	})
}

// A key whose calls are only refused is in use, and keeps its series. So does one that is not idle.
func TestGroupKeepsTheSeriesOfAnOpenKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := breaker.NewGroup[string]("g", breaker.GroupConfig{MaxSeries: 2, Breaker: breaker.Config{ConsecutiveFailures: 1}})
		var m counterChecker
		_ = g.Get("failed").Run(bg(), fail)
		g.Get("forced").Force(breaker.ForcedOpen, "")
		for range 30 {
			require.ErrorIs(t, g.Get("forced").Run(bg(), succeed), breaker.ErrOpen)
			lines := m.read(t, g, 1, 2)
			require.Contains(t, lines, "calls failure failed")
			require.Contains(t, lines, "calls refused forced")
			time.Sleep(time.Minute)
		}
	})
}

// The series of a key end when it is evicted, and the key that takes its place gets series.
func TestGroupEndsTheSeriesOfAKeyThatIsEvicted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := breaker.NewGroup[string]("g", breaker.GroupConfig{MaxKeys: 2, MaxSeries: 1})
		var m counterChecker
		g.Get("b").Force(breaker.ForcedClosed, "") // gets the series
		_ = g.Get("a").Run(bg(), succeed)
		require.Contains(t, m.read(t, g, 1, 2), "calls success b")
		require.True(t, g.Forget("b"))
		_ = g.Get("c").Run(bg(), succeed)
		lines := m.read(t, g, 1, 2)
		require.NotContains(t, lines, "calls success b")
		require.InDelta(t, 1, lines["calls success c"], 0)
		time.Sleep(time.Minute)
		g.Get("d").Force(breaker.ForcedClosed, "")
		g.Get("e").Force(breaker.ForcedClosed, "")
		lines = m.read(t, g, 0, 2)
		require.NotContains(t, lines, "calls success c")
		require.InDelta(t, 1, lines["calls success _other"], 0, "that of a")
		require.InDelta(t, 1, max(lines["state forced_closed d"], lines["state forced_closed e"]), 0)
		require.InDelta(t, 1, lines["state forced_closed _other"], 0)
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
