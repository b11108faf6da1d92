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

// Every method of an evicted breaker acts on the breaker that its key has now.
func TestGroupEvictedBreakerPassesEverythingOn(t *testing.T) {
	u := after(time.Minute)
	for name, do := range map[string]struct {
		act  func(*breaker.Breaker)
		want func(t *testing.T, now *breaker.Breaker)
	}{
		"Force": {
			func(b *breaker.Breaker) { b.ForceAt(u, breaker.ForcedOpen) },
			func(t *testing.T, now *breaker.Breaker) { require.Equal(t, breaker.ForcedOpen, now.StateAt(u)) },
		},
		"OpenFor": {
			func(b *breaker.Breaker) { b.OpenForAt(u, time.Hour) },
			func(t *testing.T, now *breaker.Breaker) { require.ErrorIs(t, now.CheckAt(u), breaker.ErrOpen) },
		},
		"Reconfigure": {
			func(b *breaker.Breaker) { _ = b.ReconfigureAt(u, breaker.Config{ConsecutiveFailures: 1}) },
			func(t *testing.T, now *breaker.Breaker) {
				failingCallAt(u)(now)
				require.Equal(t, breaker.Open, now.StateAt(u))
			},
		},
		"Allow": {
			failingCallAt(u),
			func(t *testing.T, now *breaker.Breaker) { require.EqualValues(t, 1, now.Totals().Failures) },
		},
		"Refuse": {
			func(b *breaker.Breaker) { _ = b.Refuse("a reason") },
			func(t *testing.T, now *breaker.Breaker) { require.EqualValues(t, 1, now.Totals().Refused) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newEvictableGroup(2, breaker.Config{})
			old := g.GetAt(t0, "a")
			evictAll(g, u)
			do.act(old)
			now := g.GetAt(u, "a")
			require.NotSame(t, old, now)
			do.want(t, now)
			require.Equal(t, now.StatsAt(u), old.StatsAt(u))
			require.Equal(t, now.CheckAt(u), old.CheckAt(u))
			require.Equal(t, now.Totals(), old.Totals())
			for _, line := range []string{"calls failure", "calls refused", "state forced_open"} {
				require.InDelta(t, observe(now)[line], observe(old)[line], 0, line)
			}
		})
	}
}

func TestGroupEvictedBreakerCallsItsWatchers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := breaker.NewGroup[string]("g", breaker.GroupConfig{MaxKeys: 2, MaxSeries: breaker.Off})
		old := g.Get("a")
		time.Sleep(time.Minute)
		evictAll(g, time.Now())
		woken := 0
		old.AfterOpen(func() { woken++ })
		time.Sleep(time.Minute)
		addKeys(g, time.Now(), 20)
		g.Get("a").OpenFor(time.Second)
		require.Equal(t, 1, woken)
	})
}

// Methods that only read the evicted breaker of a key do not add the key to the group.
func TestGroupQuestionsToAnEvictedBreakerAddNoKey(t *testing.T) {
	g, u := newEvictableGroup(2, breaker.Config{}), after(time.Minute)
	old := g.GetAt(t0, "a")
	evictAll(g, u)
	evictions := g.Stats().Evictions
	require.Equal(t, breaker.Closed, old.StateAt(u))
	require.False(t, old.Tripped())
	require.NoError(t, old.CheckAt(u))
	require.Zero(t, old.CountsAt(u))
	require.Zero(t, old.StatsAt(u).Totals)
	require.Zero(t, old.Latency())
	observe(old)
	require.Equal(t, evictions, g.Stats().Evictions)
}

// An evicted breaker is unguarded while there is no room for its key, and its calls do not change
// other keys.
func TestGroupWithoutRoomForAnEvictedBreakersKey(t *testing.T) {
	g, u := newEvictableGroup(1, breaker.Config{MinCalls: 1}), after(time.Minute)
	old := g.GetAt(t0, "a")
	g.GetAt(u, "b").OpenForAt(u, time.Hour)
	require.EqualValues(t, 1, g.Stats().Evictions)
	for range 3 {
		p, err := old.AllowAt(u)
		require.NoError(t, err)
		require.True(t, p.RecordAt(u, breaker.Failure))
	}
	require.EqualValues(t, 3, g.Stats().Unguarded)
	old.ForceAt(u, breaker.ForcedOpen)
	unguarded := g.GetAt(u, "c")
	for _, do := range []func(){
		func() { unguarded.ForceAt(u, breaker.ForcedOpen) }, func() { unguarded.ReleaseAt(u) },
	} {
		do()
		require.Equal(t, breaker.ForcedClosed, g.GetAt(u, "d").StateAt(u), "the breaker of all such keys cannot be changed")
	}
	require.EqualValues(t, 3, unguarded.Totals().Failures)
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
				wg.Go(func() { g.Get(key).Force(s) })
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

// A stale time given to an evicted breaker, such as the zero time, is stale for the breaker that
// its key has now too.
func TestGroupEvictedBreakerAtAStaleTime(t *testing.T) {
	for name, do := range map[string]func(b *breaker.Breaker, old *breaker.Permit){
		"Allow":       func(b *breaker.Breaker, _ *breaker.Permit) { _, _ = b.AllowAt(time.Time{}) },
		"Record":      func(_ *breaker.Breaker, old *breaker.Permit) { old.RecordAt(time.Time{}, breaker.Failure) },
		"Reset":       func(b *breaker.Breaker, _ *breaker.Permit) { b.ResetAt(time.Time{}) },
		"Reconfigure": func(b *breaker.Breaker, _ *breaker.Permit) { _ = b.ReconfigureAt(time.Time{}, breaker.Config{}) },
		"Check": func(b *breaker.Breaker, _ *breaker.Permit) {
			// the key has a breaker that was not used yet
			_ = b.CheckAt(time.Time{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, u := newEvictableGroup(2, breaker.Config{}), after(time.Minute)
			b := g.GetAt(t0, "a")
			old, err := b.AllowAt(t0)
			require.NoError(t, err)
			evictAll(g, u)
			if name == "Check" {
				g.GetAt(u, "a")
			}
			do(b, &old)
			b.OpenForAt(u, time.Second)
			require.Equal(t, breaker.Open, b.StateAt(u))
			require.Equal(t, u, b.StatsAt(u).Since)
			require.Equal(t, breaker.HalfOpen, b.StateAt(u.Add(time.Second)))
		})
	}
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
