package breaker_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
)

// evictAll adds other keys, which replace all members that can be evicted.
func evictAll(g *breaker.Group[string], u time.Time) {
	before := g.Stats().Evictions
	for i := range 3 { // the last round is at u, and each round adds keys of its own
		addKeys(g, u.Add(time.Duration(i-2)), g.Len())
	}
	if g.Stats().Evictions < before+int64(g.Len()) {
		panic("they stay")
	}
}

// failingCallAt returns a function that makes a call at u that fails.
func failingCallAt(u time.Time) func(*breaker.Breaker) {
	return func(b *breaker.Breaker) {
		p, _ := b.AllowAt(u)
		p.RecordAt(u, breaker.Failure)
	}
}

// A breaker that is kept after its key was evicted or forgotten works alone: what is done to it is
// not done to the breaker that the key has now, and the group does nothing to it.
func TestABreakerThatHasLeftItsGroupWorksAlone(t *testing.T) {
	u := after(time.Minute)
	for name, leave := range map[string]func(g *breaker.Group[string]){
		"evicted":   func(g *breaker.Group[string]) { evictAll(g, u) },
		"forgotten": func(g *breaker.Group[string]) { require.True(t, g.Forget("a")) },
	} {
		t.Run(name, func(t *testing.T) {
			c := breaker.GroupConfig{Breaker: breaker.Config{MinCalls: 1, Cooldown: time.Second}, MaxKeys: 2, MaxSeries: breaker.Off, MaxOpen: 1}
			g := breaker.NewGroupAt[string]("g", c, t0)
			old := g.GetAt(t0, "a")
			leave(g)
			now := g.GetAt(u, "a")
			require.NotSame(t, old, now)
			failingCallAt(u)(old)
			require.Equal(t, breaker.Open, old.StateAt(u))
			require.Equal(t, breaker.Closed, now.StateAt(u))
			require.Zero(t, now.Totals())
			require.ErrorIs(t, old.CheckAt(u), breaker.ErrOpen)
			require.Zero(t, groupMetrics(g)["calls failure _other"])
			c.MaxOpen = 0.01 // one key may be open
			require.NoError(t, g.Reconfigure(c))
			failingCallAt(u)(now)
			require.Equal(t, breaker.Open, now.StateAt(u), "the old one has no place")

			g.ForceAll(breaker.ForcedOpen)
			require.Equal(t, breaker.Open, old.StateAt(u), "the group does not override it")
			old.ForceAt(u, breaker.Disabled, "")
			require.Equal(t, breaker.ForcedOpen, now.StateAt(u))
			old.ReleaseAt(u)
			require.NoError(t, old.ReconfigureAt(u, breaker.Config{MinCalls: 3}))
			old.ResetAt(u)
			for range 2 {
				failingCallAt(u)(old)
				require.Equal(t, breaker.Closed, old.StateAt(u))
			}
			woken := 0
			old.AfterOpen(func() { woken++ })
			failingCallAt(u)(old)
			require.Equal(t, 1, woken)
			require.Equal(t, breaker.Open, old.StateAt(u))
			require.EqualValues(t, 4, old.Totals().Failures)
		})
	}
}

// A key that is open when it leaves gives its place among the open keys back.
func TestAKeyThatIsForgottenGivesItsPlaceBack(t *testing.T) {
	g := breaker.NewGroupAt[string]("g", breaker.GroupConfig{Breaker: breaker.Config{MinCalls: 1}, MaxKeys: 2, MaxSeries: breaker.Off, MaxOpen: 0.01}, t0)
	failingCallAt(t0)(g.GetAt(t0, "a"))
	failingCallAt(t0)(g.GetAt(t0, "b"))
	require.Equal(t, breaker.Closed, g.GetAt(t0, "b").StateAt(t0))
	require.True(t, g.Forget("a"))
	failingCallAt(t0)(g.GetAt(t0, "b"))
	require.Equal(t, breaker.Open, g.GetAt(t0, "b").StateAt(t0))
}

// The breaker of all keys without room cannot be changed.
func TestTheUnguardedBreakerCannotBeChanged(t *testing.T) {
	g := newEvictableGroup(1, breaker.Config{MinCalls: 1})
	g.GetAt(t0, "b").OpenForAt(t0, time.Hour)
	unguarded := g.GetAt(t0, "c")
	for _, do := range []func(){
		func() { unguarded.ForceAt(t0, breaker.ForcedOpen, "") }, func() { unguarded.ReleaseAt(t0) },
		func() { failingCallAt(t0)(unguarded) },
	} {
		do()
		require.Equal(t, breaker.ForcedClosed, g.GetAt(t0, "d").StateAt(t0))
	}
	require.EqualValues(t, 1, unguarded.Totals().Failures)
}

// A slow callback for one member does not delay the changes of other members.
func TestGroupReportsChangesOfSeveralMembersAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var atWork, most atomic.Int64
		var mu sync.Mutex
		order := map[string][]uint64{}
		g := breaker.NewGroup[string]("g", breaker.GroupConfig{Breaker: breaker.Config{OnChange: func(c breaker.Change) {
			if n := atWork.Add(1); n > most.Load() {
				most.Store(n)
			}
			time.Sleep(time.Second)
			mu.Lock()
			order[c.Key] = append(order[c.Key], c.Seq())
			mu.Unlock()
			atWork.Add(-1)
		}}})
		began := time.Now()
		var wg sync.WaitGroup
		for _, key := range []string{"a", "b", "c"} {
			for _, s := range []breaker.State{breaker.ForcedOpen, breaker.Disabled} {
				wg.Go(func() { g.Get(key).Force(s, "") })
			}
		}
		wg.Wait()
		require.EqualValues(t, 3, most.Load())
		require.Equal(t, 2*time.Second, time.Since(began))
		for _, key := range []string{"a", "b", "c"} {
			require.Equal(t, []uint64{1, 2}, order[key], "those of one member come one at a time and in order")
		}
	})
}

// A recovering key is never evicted, and its state is in the series of all other keys.
func TestAGroupKeepsARecoveringKey(t *testing.T) {
	g := newEvictableGroup(2, breaker.Config{MinCalls: 1, Probes: 1, Recovery: 10 * time.Second})
	makeKeyCall(t, g, t0, "a", breaker.Failure)
	u := after(5 * time.Second)
	makeKeyCall(t, g, u, "a", breaker.Success) // the probe
	b := g.GetAt(u, "a")
	require.Equal(t, breaker.Recovering, b.StateAt(u))
	for i := range 10 {
		addKeys(g, u.Add(time.Duration(i+1)*time.Minute), 3)
	}
	u = u.Add(time.Hour)
	require.Same(t, b, g.GetAt(u, "a"))
	require.Equal(t, breaker.Recovering, b.StateAt(u))
	lines := groupMetrics(g)
	require.InDelta(t, 1, lines["state recovering _other"], 0)
	require.InDelta(t, 1, lines["transitions recovering _other"], 0)
	require.Greater(t, lines["state_time recovering _other"], 0.0)
}
