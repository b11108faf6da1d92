package breaker_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
)

// failuresToOpen returns how many failures open the breaker.
func failuresToOpen(t *testing.T, b *breaker.Breaker, u time.Time) (n int) {
	t.Helper()
	for n = 1; n < 100; n++ {
		p, err := b.AllowAt(u)
		require.NoError(t, err)
		p.RecordAt(u, breaker.Failure)
		if b.StateAt(u) == breaker.Open {
			break
		}
	}
	return n
}

func TestGroupReconfigureIsForPresentAndFutureMembers(t *testing.T) {
	g, u := newEvictableGroup(4, breaker.Config{MinCalls: 5}), after(time.Minute)
	early := g.GetAt(after(time.Second), "early")
	require.NoError(t, g.ReconfigureAt(u, breaker.Config{MinCalls: 3}))
	require.Equal(t, 3, failuresToOpen(t, early, u))
	require.Equal(t, 3, failuresToOpen(t, g.GetAt(u, "late"), u))

	err := g.ReconfigureAt(u, breaker.Config{MinCalls: -7})
	require.EqualError(t, err, "breaker: Breaker: breaker: MinCalls is -7, must be at least 1")
	require.Equal(t, 3, failuresToOpen(t, g.GetAt(u, "still"), u), "nothing has changed")
}

func TestGroupReconfigureReplacesClassify(t *testing.T) {
	g := newEvictableGroup(4, breaker.Config{})
	b := g.Get("a")
	require.Equal(t, breaker.Failure, outcomeOf(bg(), t, b, errDown))
	require.NoError(t, g.ReconfigureAt(time.Now(), breaker.Config{Classify: breaker.Accept(errDown)}))
	require.Equal(t, breaker.Success, outcomeOf(bg(), t, b, errDown))
}

// A member keeps its state and its calls when its group is reconfigured.
func TestGroupReconfigureKeepsWhatMembersHave(t *testing.T) {
	g := newEvictableGroup(4, breaker.Config{MinCalls: 2, Cooldown: time.Hour})
	open, failed := g.GetAt(t0, "open"), g.GetAt(t0, "failed")
	require.Equal(t, 2, failuresToOpen(t, open, t0))
	makeKeyCall(t, g, t0, "failed", breaker.Failure)
	require.NoError(t, g.ReconfigureAt(t0, breaker.Config{MinCalls: 3}))
	require.Equal(t, breaker.Open, open.StateAt(after(59*time.Minute)))
	require.EqualValues(t, 1, failed.CountsAt(t0).Failures)
	require.Equal(t, 2, failuresToOpen(t, failed, t0))
}

// However a group is reconfigured, members that are idle afterwards can be evicted.
func TestGroupReconfigurePinsNoMember(t *testing.T) {
	same := breaker.Config{MinCalls: 5}
	for name, reconfigure := range map[string]func(*breaker.Group[string]){
		"the group":                   func(g *breaker.Group[string]) { _ = g.ReconfigureAt(t0, breaker.Config{MinCalls: 7}) },
		"the group, to what it was":   func(g *breaker.Group[string]) { _ = g.ReconfigureAt(t0, same) },
		"each member, to what it was": func(g *breaker.Group[string]) { reconfigureEach(g, same) },
		"each member, then the group": func(g *breaker.Group[string]) {
			reconfigureEach(g, breaker.Config{MinCalls: 9})
			_ = g.ReconfigureAt(t0, same)
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newEvictableGroup(100, same)
			addKeys(g, t0, 100)
			reconfigure(g)
			addKeys(g, after(time.Hour), 100)
			require.Equal(t, breaker.GroupStats{Members: 100, Evictions: 100}, g.Stats())
		})
	}
}

func reconfigureEach(g *breaker.Group[string], c breaker.Config) {
	for _, b := range g.All() {
		_ = b.ReconfigureAt(t0, c)
	}
}

// A member with a Config of its own keeps it and is not evicted.
func TestGroupKeepsAMemberWithAConfigOfItsOwn(t *testing.T) {
	g := newEvictableGroup(2, breaker.Config{})
	require.NoError(t, g.GetAt(t0, "own").ReconfigureAt(t0, breaker.Config{MinCalls: 3}))
	addKeys(g, after(time.Hour), 20)
	require.Equal(t, 3, failuresToOpen(t, g.GetAt(after(time.Hour), "own"), after(time.Hour)))
	require.Zero(t, g.Stats().Unguarded, "the other place is in turn everybody's")
}

// Members that are added while a group is reconfigured have the new Config.
func TestGroupReconfigureIncludesMembersAddedMeanwhile(t *testing.T) {
	for round := range 50 {
		g := breaker.NewGroupAt[int]("g", breaker.GroupConfig{Breaker: breaker.Config{MinCalls: 9}, MaxKeys: 1000, MaxSeries: breaker.Off}, t0)
		var wg sync.WaitGroup
		for worker := range 2 {
			wg.Go(func() {
				for i := range 100 {
					g.GetAt(t0, 1000*worker+i)
				}
			})
		}
		wg.Go(func() { _ = g.ReconfigureAt(t0, breaker.Config{MinCalls: 3}) })
		wg.Wait()
		require.Equal(t, 200, g.Len())
		for key, b := range g.All() {
			require.Equal(t, 3, failuresToOpen(t, b, t0), "round %d, key %d", round, key)
		}
	}
}

// OnChange may reconfigure the group while the group is reconfigured. All members have the later
// Config then, and no member is kept from being evicted.
func TestGroupReconfigureWithinAnother(t *testing.T) {
	var g *breaker.Group[string]
	last, again := breaker.Config{MinCalls: 2}, 0
	first := breaker.Config{MinCalls: 1, OnChange: func(breaker.Change) {
		if again++; again == 1 {
			require.NoError(t, g.ReconfigureAt(t0, last))
		}
	}}
	g = newEvictableGroup(3, breaker.Config{Probes: 9})
	for _, key := range []string{"a", "b", "c"} { // each closes when the first config takes effect
		g.GetAt(t0, key).OpenForAt(t0, 0)
		makeKeyCall(t, g, t0, key, breaker.Success)
	}
	require.NoError(t, g.ReconfigureAt(t0, first))
	require.Equal(t, 1, again)
	for key, b := range g.All() {
		b.ResetAt(t0)
		require.Equal(t, 2, failuresToOpen(t, b, t0), key)
		b.ResetAt(t0)
	}
	evictAll(g, after(time.Hour))
}

// A call that began before its group timed calls has no duration.
func TestGroupTimesNoCallThatBeganBefore(t *testing.T) {
	for name, c := range map[string]breaker.Config{
		"Latency":                 {Latency: true},
		"Latency, in shadow mode": {Latency: true, Force: breaker.Shadow},
	} {
		t.Run(name, func(t *testing.T) {
			g, u := newEvictableGroup(2, breaker.Config{Force: c.Force}), after(time.Minute)
			b := g.GetAt(t0, "a")
			p, err := b.AllowAt(t0)
			require.NoError(t, err)
			require.NoError(t, g.ReconfigureAt(t0, c))
			require.True(t, p.RecordAt(u, breaker.Success))
			require.EqualValues(t, 1, b.Totals().Successes)
			require.Zero(t, b.LifetimeLatency().Count())
		})
	}
}

// All members get the override of the Config, and may be evicted under it.
func TestGroupReconfigureForcesPresentAndFutureMembers(t *testing.T) {
	for _, c := range []struct{ old, force, want breaker.State }{
		{breaker.ForcedOpen, "", breaker.Closed},
		{"", breaker.ForcedOpen, breaker.ForcedOpen},
		{breaker.Shadow, breaker.Disabled, breaker.Disabled},
	} {
		g, u := newEvictableGroup(2, breaker.Config{Force: c.old}), after(time.Hour)
		b := g.GetAt(t0, "a")
		require.NoError(t, g.ReconfigureAt(t0, breaker.Config{Force: c.force}))
		require.Equal(t, c.want, b.StateAt(t0), "%v, then %v", c.old, c.force)
		require.Equal(t, c.want, g.GetAt(t0, "b").StateAt(t0), "%v, then %v", c.old, c.force)
		addKeys(g, u, 10)
		require.EqualValues(t, 10, g.Stats().Evictions, "%v, then %v", c.old, c.force)
	}
}

func TestGroupReconfigureKeepsMaxKeysAndMaxSeries(t *testing.T) {
	g := breaker.NewGroup[int]("g", breaker.GroupConfig{})
	g.Get(1)
	for _, c := range []breaker.GroupConfig{{MaxKeys: 100_001}, {MaxKeys: 99_999}, {MaxSeries: 99}, {MaxSeries: breaker.Off}} {
		c.Breaker, c.MaxOpen = forcedConfig, 0.5
		require.EqualError(t, g.Reconfigure(c), "breaker: Reconfigure can change Breaker and MaxOpen; MaxKeys and MaxSeries must be as before")
		require.Equal(t, breaker.Closed, g.Get(1).State(), "nothing has changed")
	}
	require.NoError(t, g.Reconfigure(breaker.GroupConfig{MaxKeys: 100_000, MaxSeries: 100, Breaker: forcedConfig}), "the defaults")
	require.Equal(t, breaker.ForcedOpen, g.Get(1).State())
}
