package breaker_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
)

// boundedGroup returns a group with keys 0 to keys-1, each of which opens at its first failure.
// setMaxOpen replaces MaxOpen of a boundedGroup of the zero Config.
func setMaxOpen(g *breaker.Group[int], share float64) error {
	return g.Reconfigure(breaker.GroupConfig{Breaker: breaker.Config{MinCalls: 100, ConsecutiveFailures: 1}, MaxOpen: share})
}

func boundedGroup(keys int, share float64, c breaker.Config) *breaker.Group[int] {
	c.MinCalls, c.ConsecutiveFailures = 100, 1
	g := breaker.NewGroupAt[int]("g", breaker.GroupConfig{Breaker: c, MaxOpen: share}, t0)
	for key := range keys {
		g.GetAt(t0, key)
	}
	return g
}

// countOpenKeys returns the number of keys whose breakers have opened and not closed since.
func countOpenKeys(g *breaker.Group[int]) (n int) {
	for _, b := range g.All() {
		if b.Tripped() {
			n++
		}
	}
	return n
}

// failKeys makes one call for each key. The call fails, unless it is refused.
func failKeys(g *breaker.Group[int], u time.Time, keys ...int) {
	for _, key := range keys {
		if p, err := g.GetAt(u, key).AllowAt(u); err == nil {
			p.RecordAt(u, breaker.Failure)
		}
	}
}

func TestMaxOpenIsAShareOfAllKeys(t *testing.T) {
	for _, c := range []struct {
		keys  int
		share float64
		open  int
	}{
		{1, 0.1, 1},
		{9, 0.1, 1},
		{10, 0.1, 1},
		{19, 0.1, 1},
		{20, 0.1, 2},
		{100, 0.29, 29},
		{100, 0.57, 57},
		{3, 2. / 3, 2},
		{7, 1, 7},
		{7, 0, 7},
		{10, 1e-300, 1},
		{10, 0.999, 9},
		{1000, 0.001, 1},
		{1000, 0.002, 2},
	} {
		g := boundedGroup(c.keys, c.share, breaker.Config{})
		for key := range c.keys {
			failKeys(g, after(secondsOf(1)), key)
			if key < 100 || key%100 == 99 { // to count is slow
				require.Equal(t, min(key+1, c.open), countOpenKeys(g), "%+v", c)
			}
		}
		require.InDelta(t, c.keys-c.open, preventedOpenings(g), 0, "%+v", c)
	}
}

// preventedOpenings returns the number of openings that MaxOpen has prevented.
func preventedOpenings(g *breaker.Group[int]) (n float64) {
	for s, v := range g.Observe {
		if s.Instrument.Name == "weir.breaker.group.prevented_openings" {
			n = v
		}
	}
	return n
}

func TestMaxOpenMustBeAShare(t *testing.T) {
	for _, share := range []float64{-1, -1e-9, 1.0000001, math.NaN(), math.Inf(1), math.Inf(-1)} {
		c := breaker.GroupConfig{MaxOpen: share}
		require.ErrorContains(t, c.Validate(), fmt.Sprintf("breaker: MaxOpen is %v, must lie between 0 and 1", share))
		require.Panics(t, func() { breaker.NewGroup[int]("g", c) })
		g := boundedGroup(2, 0.5, breaker.Config{})
		require.EqualError(t, setMaxOpen(g, share), c.Validate().Error())
		failKeys(g, t0, 0, 1)
		require.Equal(t, 1, countOpenKeys(g), "the old share stays")
	}
}

// A key that may not open stays closed and goes on counting. It reports this once per cooldown.
func TestAKeyThatMayNotOpenSaysSo(t *testing.T) {
	var told recorder
	g := boundedGroup(10, 0.2, told.attachTo(breaker.Config{Cooldown: secondsOf(5)}))
	failKeys(g, after(secondsOf(1)), 0, 1)
	for ms := range 11_000 {
		u := after(secondsOf(1) + time.Duration(ms)*time.Millisecond)
		failKeys(g, u, 7)
		require.Equal(t, breaker.Closed, g.GetAt(u, 7).StateAt(u))
	}
	require.EqualValues(t, 11_000, g.Get(7).Totals().Failures)
	require.InDelta(t, 3, preventedOpenings(g), 0)
	changes := told.changes()[2:]
	require.Len(t, changes, 3)
	for i, c := range changes {
		require.Equal(t, []any{"g", "7", breaker.Closed, breaker.Closed}, []any{c.Name, c.Key, c.From, c.To})
		require.Equal(t, after(secondsOf(float64(1+5*i))), c.At)
		require.Contains(t, c.Reason, "would open, but 2 of 10 keys are open, MaxOpen 20%: ")
	}
	require.Contains(t, changes[0].Reason, "1 failures in a row, limit 1")
	require.EqualValues(t, 1, changes[0].Counts.Failures)
}

func TestAKeyOpensWhenAPlaceIsFree(t *testing.T) {
	for name, free := range map[string]func(g *breaker.Group[int], u time.Time){
		"reset":         func(g *breaker.Group[int], u time.Time) { g.GetAt(u, 0).ResetAt(u) },
		"forgotten":     func(g *breaker.Group[int], _ time.Time) { g.Forget(0) },
		"forced closed": func(g *breaker.Group[int], u time.Time) { g.GetAt(u, 0).ForceAt(u, breaker.ForcedClosed, "") },
		"probed": func(g *breaker.Group[int], u time.Time) {
			b := g.GetAt(u, 0)
			b.OpenForAt(u, 0)
			p, _ := b.AllowAt(u)
			p.RecordAt(u, breaker.Success)
		},
		"more keys": func(g *breaker.Group[int], u time.Time) {
			for key := range 4 {
				g.GetAt(u, 100+key)
			}
		},
		"more MaxOpen": func(g *breaker.Group[int], _ time.Time) { _ = setMaxOpen(g, 0.5) },
		"no MaxOpen":   func(g *breaker.Group[int], _ time.Time) { _ = setMaxOpen(g, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			u := after(secondsOf(1))
			g := boundedGroup(4, 0.25, breaker.Config{Recovery: breaker.Off, Probes: 1})
			failKeys(g, u, 0, 1)
			require.Equal(t, breaker.Closed, g.Get(1).StateAt(u))
			free(g, u)
			require.Equal(t, breaker.Closed, g.Get(1).StateAt(u), "it is judged at its next result")
			failKeys(g, u, 1, 2, 3)
			require.Equal(t, breaker.Open, g.Get(1).StateAt(u))
			if name != "no MaxOpen" && name != "more MaxOpen" {
				require.Equal(t, breaker.Closed, g.Get(3).StateAt(u))
			}
		})
	}
}

// A half-open or recovering key keeps its place, so it can open again at any time.
func TestAKeyKeepsItsPlaceUntilItCloses(t *testing.T) {
	g := boundedGroup(2, 0.5, breaker.Config{Cooldown: secondsOf(1), Probes: 1, Recovery: secondsOf(5), ProbeTimeout: secondsOf(1)})
	b := g.Get(0)
	failKeys(g, after(0), 0)
	for at := 1.; at < 4; at++ { // failed probes
		require.Equal(t, breaker.HalfOpen, b.StateAt(after(secondsOf(at))))
		failKeys(g, after(secondsOf(at)), 1, 0)
		require.Equal(t, breaker.Open, b.StateAt(after(secondsOf(at))))
	}
	p, err := b.AllowAt(after(secondsOf(4)))
	require.NoError(t, err)
	p.RecordAt(after(secondsOf(4)), breaker.Success)
	at := 4.
	for ; b.StateAt(after(secondsOf(at))) == breaker.Recovering; at += 0.1 {
		failKeys(g, after(secondsOf(at)), 1, 0)
		require.Equal(t, breaker.Closed, g.Get(1).StateAt(after(secondsOf(at))))
	}
	require.Equal(t, breaker.Open, b.StateAt(after(secondsOf(at))), "it relapses")
	b.ResetAt(after(secondsOf(at)))
	failKeys(g, after(secondsOf(at)), 1, 0)
	require.Equal(t, []breaker.State{breaker.Closed, breaker.Open}, []breaker.State{b.StateAt(after(secondsOf(at))), g.Get(1).StateAt(after(secondsOf(at)))})
}

func TestMaxOpenDoesNotBindTheHand(t *testing.T) {
	g := boundedGroup(10, 0.2, breaker.Config{})
	for key := range 4 {
		g.Get(key).OpenForAt(t0, time.Hour)
		g.Get(key+4).ForceAt(t0, breaker.ForcedOpen, "")
	}
	require.Equal(t, 8, countOpenKeys(g))
	failKeys(g, t0, 8)
	require.Equal(t, 8, countOpenKeys(g), "keys opened by hand count")
	for key := range 3 {
		g.Get(key).ResetAt(t0)
		g.Get(key + 4).ReleaseAt(t0)
	}
	failKeys(g, t0, 8)
	require.Equal(t, 2, countOpenKeys(g))
	g.Get(3).ResetAt(t0)
	failKeys(g, t0, 8, 9)
	require.Equal(t, 2, countOpenKeys(g))
}

func TestALowerMaxOpenClosesNoKey(t *testing.T) {
	g := boundedGroup(10, 0, breaker.Config{})
	failKeys(g, t0, 0, 1, 2, 3, 4)
	require.NoError(t, setMaxOpen(g, 0.3))
	require.Equal(t, 5, countOpenKeys(g))
	for key := range 3 {
		failKeys(g, t0, 9)
		require.Equal(t, breaker.Closed, g.Get(9).StateAt(t0))
		g.Get(key).ResetAt(t0)
	}
	failKeys(g, t0, 9, 8)
	require.Equal(t, breaker.Open, g.Get(9).StateAt(t0))
	require.Equal(t, 3, countOpenKeys(g))
}

// MaxOpen does not bind breakers in shadow mode: all of them would open.
func TestMaxOpenDoesNotBindShadows(t *testing.T) {
	g := boundedGroup(4, 0.25, breaker.Config{Force: breaker.Shadow})
	failKeys(g, t0, 0, 1, 2)
	require.Zero(t, countOpenKeys(g))
	opened, _ := g.Get(2).ShadowTotals()
	require.EqualValues(t, 1, opened)
}
