package breaker_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
)

// A forgotten key starts with a new breaker, whatever the state of its old one.
func TestGroupForgetsAKeyInAnyState(t *testing.T) {
	for name, prepare := range map[string]func(*breaker.Breaker){
		"closed":      func(*breaker.Breaker) {},
		"open":        func(b *breaker.Breaker) { b.OpenFor(time.Hour) },
		"half-open":   func(b *breaker.Breaker) { b.OpenFor(0); _, _ = b.Allow() },
		"forced open": func(b *breaker.Breaker) { b.Force(breaker.ForcedOpen, "") },
		"shadow":      func(b *breaker.Breaker) { b.Force(breaker.Shadow, "") },
		"in use":      func(b *breaker.Breaker) { _ = b.Run(bg(), fail) },
		"configured":  func(b *breaker.Breaker) { _ = b.Reconfigure(breaker.Config{MinCalls: 3}) },
	} {
		t.Run(name, func(t *testing.T) {
			g := breaker.NewGroup[string]("g", breaker.GroupConfig{MaxKeys: 1, Breaker: breaker.Config{MinCalls: 2}})
			old := g.Get("a")
			prepare(old)
			require.True(t, g.Forget("a"))
			require.False(t, g.Forget("a"), "it is not there")
			require.Equal(t, breaker.GroupStats{}, g.Stats(), "which is no eviction")
			now := g.Get("a")
			require.NotSame(t, old, now)
			require.Equal(t, breaker.Closed, now.State())
			require.Zero(t, now.Totals())
			require.Equal(t, 2, failuresToOpen(t, now, time.Now()))
		})
	}
}

// Forgetting a key makes room for another key at once.
func TestGroupHasRoomForAnotherKeyAfterForget(t *testing.T) {
	g := breaker.NewGroup[string]("g", breaker.GroupConfig{MaxKeys: 3})
	for _, key := range []string{"a", "b", "c"} {
		g.Get(key).OpenFor(time.Hour)
	}
	require.Equal(t, breaker.ForcedClosed, g.Get("d").State())
	require.True(t, g.Forget("b"))
	require.Equal(t, 2, g.Len())
	require.Equal(t, breaker.Closed, g.Get("d").State())
	require.Equal(t, breaker.Open, g.Get("a").State())
	require.Equal(t, breaker.Open, g.Get("c").State())
	long := strings.Repeat("x", 1000)
	require.True(t, g.Forget("a"))
	g.Get(long)
	require.True(t, g.Forget(long))
	require.Equal(t, 2, g.Len())
}

// Forgetting keys, with or without series of their own, makes no counter fall or jump, and loses no
// call of the sums.
func TestGroupCountersOnlyGrowWhenKeysAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := breaker.NewGroup[string]("g", breaker.GroupConfig{MaxKeys: 6, MaxSeries: 1, Breaker: breaker.Config{Latency: true}})
		var m counterChecker
		m.read(t, g, 0, 6)
		for round := range 20 {
			time.Sleep(time.Second)
			for _, key := range []string{"own", "other"} { // the first key has series of its own
				_ = g.Get(key).Run(bg(), succeed)
				_ = g.Get(key).Run(bg(), succeed)
			}
			lines := m.read(t, g, 4, 6)
			require.InDelta(t, 2, lines["calls success own"], 0)
			require.InDelta(t, 2*(round+1), lines["calls success _other"], 0)
			require.True(t, g.Forget("own"))
			lines = m.read(t, g, 0, 6)
			require.NotContains(t, lines, "calls success own")
			require.InDelta(t, 2*(round+1), lines["calls success _other"], 0)
			require.True(t, g.Forget("other"))
			m.read(t, g, 0, 6)
		}
	})
}
