package breaker_test

import (
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
)

// A group that found no room searches again after a hundredth of the window, not for each new key.
func TestGroupThatIsFullDoesNotLookForRoomForEachKey(t *testing.T) {
	g := newEvictableGroup(1, breaker.Config{Window: 10 * time.Second})
	a := g.GetAt(t0, "a")
	a.OpenForAt(t0, time.Hour)
	u := after(20 * time.Second)
	require.Equal(t, breaker.ForcedClosed, g.GetAt(u, "b").StateAt(u))
	a.ResetAt(u)
	again := u.Add(100 * time.Millisecond)
	require.Equal(t, breaker.ForcedClosed, g.GetAt(again.Add(-1), "b").StateAt(again))
	require.Equal(t, breaker.Closed, g.GetAt(again, "b").StateAt(again))
}

// If the clock goes back, the group looks for room at once. It does not wait until the clock has
// caught up.
func TestGroupThatWasFullAtALaterTimeLooksForRoom(t *testing.T) {
	g := newEvictableGroup(1, breaker.Config{})
	a := g.GetAt(t0, "a")
	a.OpenForAt(t0, time.Hour)
	u := after(time.Minute)
	require.Equal(t, breaker.ForcedClosed, g.GetAt(u, "b").StateAt(u))
	a.ResetAt(t0)
	require.Equal(t, breaker.Closed, g.GetAt(after(time.Second), "b").StateAt(u))
}

// If all members are idle, the one that was not asked for recently is evicted.
func TestGroupEvictsAMemberThatWasNotUsedLately(t *testing.T) {
	g := newEvictableGroup(3, breaker.Config{})
	for _, key := range []string{"a", "b", "c", "d"} { // all have been used, and one is evicted
		g.GetAt(t0, key)
	}
	require.EqualValues(t, 1, g.Stats().Evictions)
	before := maps.Collect(g.All())
	delete(before, "d")
	require.Len(t, before, 2)
	for key, b := range before {
		require.Same(t, b, g.GetAt(t0, key), "one of them is asked for again")
		g.GetAt(t0, "e")
		require.Same(t, b, maps.Collect(g.All())[key])
		return
	}
}

func TestGroupWithLastCallsEvictsAMemberUnusedForAnHour(t *testing.T) {
	g := newEvictableGroup(1, breaker.Config{LastCalls: 5})
	makeKeyCall(t, g, t0, "a", breaker.Failure)
	addKeys(g, t0, 1)
	addKeys(g, after(time.Hour-1), 1)
	require.Zero(t, g.Stats().Evictions)
	addKeys(g, after(2*time.Hour), 1)
	require.EqualValues(t, 1, g.Stats().Evictions)
}

func TestGroupGetAtAllocatesNothing(t *testing.T) {
	g := newEvictableGroup(1, breaker.Config{})
	b := g.GetAt(t0, "a")
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		if g.GetAt(t0, "a") != b {
			t.Fatal("another breaker")
		}
	}))
	b.OpenForAt(t0, time.Hour)
	full := g.GetAt(t0, "b")
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		if g.GetAt(t0, "c") != full {
			t.Fatal("there was room")
		}
	}), "of new keys for which there is no room")
}

// A group may be a variable of a package, made long after the times at which a test uses it.
func TestGroupThatWasMadeLaterThanItIsUsed(t *testing.T) {
	g := breaker.NewGroupAt[string]("g", breaker.GroupConfig{Breaker: breaker.Config{MinCalls: 2}, MaxKeys: 1}, after(1000*time.Hour))
	require.Equal(t, 2, failuresToOpen(t, g.GetAt(t0, "a"), t0))
	require.Equal(t, breaker.ForcedClosed, g.GetAt(t0, "b").StateAt(t0))
	require.Equal(t, breaker.HalfOpen, g.GetAt(t0, "a").StateAt(after(5*time.Second)))
	g.GetAt(t0, "a").ResetAt(t0)
	require.Equal(t, breaker.Closed, g.GetAt(after(time.Second), "b").StateAt(after(time.Second)))
	require.EqualValues(t, 1, g.Stats().Evictions)
}

// Getting a key at the zero time does not make a breaker whose clock stands two thousand years ago.
func TestGroupGetAtTheZeroTime(t *testing.T) {
	g := newEvictableGroup(2, breaker.Config{})
	b := g.GetAt(time.Time{}, "a")
	_, err := b.AllowAt(time.Time{})
	require.NoError(t, err)
	b.OpenForAt(t0, time.Second)
	require.Equal(t, breaker.Open, b.StateAt(t0))
	require.Equal(t, breaker.HalfOpen, b.StateAt(after(time.Second)))
}
