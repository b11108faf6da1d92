package breaker_test

import (
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
)

func TestGroupLetsGoAfterTenSecondsWhereItsWindowIsTheLastCalls(t *testing.T) {
	last, nothing := breaker.Config{LastCalls: 5}, func(*breaker.Breaker) {}
	require.True(t, kept(last, after(10*time.Second-1), nothing))
	require.False(t, kept(last, after(10*time.Second), nothing))
}

func TestGroupKeepsABreakerUntilTheWaitThatWasAskedForIsOver(t *testing.T) {
	asked := func(b *breaker.Breaker) {
		p, _ := b.AllowAt(t0)
		p.RetryAfter(time.Minute)
		p.DoneAt(t0, breaker.Failure)
	}
	require.True(t, kept(breaker.Config{}, after(time.Minute-1), asked))
	require.False(t, kept(breaker.Config{}, after(time.Minute), asked))
}

// A key whose breaker somebody has still is no new key, however full the group is.
func TestGroupThatIsFullFindsABreakerThatSomebodyHas(t *testing.T) {
	g, u := group(1, breaker.Config{}), after(time.Minute)
	mine := g.GetAt(t0, "mine")
	g.GetAt(u, "b") // in the place of mine
	require.EqualValues(t, 1, g.Stats().Evictions)
	require.Equal(t, breaker.ForcedClosed, g.GetAt(u, "c").StateAt(u), "no room")
	require.Same(t, mine, g.GetAt(u, "mine"))
	require.EqualValues(t, 1, g.Stats().Unguarded)
}

func TestGroupTakesAskingForUseAlsoOfABreakerThatItLetGo(t *testing.T) {
	g, u := group(1, breaker.Config{}), after(2*time.Minute)
	mine := g.GetAt(t0, "mine")
	g.GetAt(after(time.Minute), "b") // in the place of mine
	require.Same(t, mine, g.GetAt(u, "mine"), "in the place of b")
	require.EqualValues(t, 2, g.Stats().Evictions)
	require.Equal(t, breaker.ForcedClosed, g.GetAt(u, "c").StateAt(u), "it was asked for just now")
	runtime.KeepAlive(mine)
}

// A group that looked for room in vain looks again after a hundredth of a window, and not for
// each new key.
func TestGroupThatIsFullDoesNotLookForRoomForEachKey(t *testing.T) {
	g := group(1, breaker.Config{Window: 10 * time.Second})
	a := g.GetAt(t0, "a")
	a.OpenForAt(t0, time.Hour)
	u := after(20 * time.Second)
	require.Equal(t, breaker.ForcedClosed, g.GetAt(u, "b").StateAt(u))
	a.ResetAt(u)
	again := u.Add(100 * time.Millisecond)
	require.Equal(t, breaker.ForcedClosed, g.GetAt(again.Add(-1), "b").StateAt(again))
	require.Equal(t, breaker.Closed, g.GetAt(again, "b").StateAt(again))
}

// One that somebody holds for ever does not hide from the group those that were kept again
// for what is over by now.
func TestGroupLetsGoAgainOfWhatItKeptWithoutAPlace(t *testing.T) {
	g := group(1, breaker.Config{})
	mine := g.GetAt(t0, "mine")
	yours := func() weak.Pointer[breaker.Breaker] {
		b := g.GetAt(after(time.Minute), "yours") // in the place of mine
		u := after(2 * time.Minute)
		g.GetAt(u, "third") // in the place of yours
		p, err := b.AllowAt(u)
		require.NoError(t, err)
		require.True(t, p.DoneAt(u, breaker.Success))
		return weak.Make(b)
	}()
	require.EqualValues(t, 2, g.Stats().Evictions)
	runtime.GC()
	require.NotNil(t, yours.Value(), "it has a call in its window")
	for hour := range 5 {
		press(g, after(time.Duration(hour+1)*time.Hour), 1)
		runtime.GC()
	}
	require.Nil(t, yours.Value())
	require.Same(t, mine, g.GetAt(after(6*time.Hour), "mine"))
	runtime.KeepAlive(g)
}

func TestGroupGetAtAllocatesNothing(t *testing.T) {
	g := group(1, breaker.Config{})
	b := g.GetAt(t0, "a")
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		if g.GetAt(t0, "a") != b {
			t.Fatal("another breaker")
		}
	}))
}
