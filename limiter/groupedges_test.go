package limiter_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/limiter"
)

func TestGroupRefusesNegativeMaxWaiters(t *testing.T) {
	require.PanicsWithError(t, "limiter: MaxWaiters is -2, must be at least 1 (or 0 for no bound)", func() {
		limiter.NewGroup(limiter.GroupConfig[int]{Rate: limiter.PerSecond(1), MaxWaiters: -2})
	})
}

func TestTierOfOutOfRangeMeansTheNearestTier(t *testing.T) {
	g := limiter.NewGroupAt(limiter.GroupConfig[int]{
		Rate: limiter.PerSecond(1), Burst: 1,
		Tiers:  []limiter.Tier{{Rate: limiter.PerSecond(1), Burst: 2}, {Rate: limiter.PerSecond(1), Burst: 3}},
		TierOf: func(key int) int { return key },
	}, start)
	for tier, want := range map[int]int{-7: 1, -1: 1, 0: 2, 1: 3, 2: 3, 7: 3} {
		require.Equal(t, want, g.Get(tier).TakeAt(start, 1).Limit, "tier %d", tier)
	}
}

func TestGroupRemembersExactlyMaxKeys(t *testing.T) {
	// eight shards of different sizes
	g := limiter.NewGroupAt(limiter.GroupConfig[int]{Rate: limiter.Per(1, time.Hour), Burst: 1, MaxKeys: 1003}, start)
	for key := range 5000 {
		g.Get(key).TakeAt(start, 1)
	}
	require.Equal(t, 1003, g.Len())
}

// After evictions, a group still remembers no more than MaxKeys keys.
func TestGroupIsBoundedAfterEvictions(t *testing.T) {
	for range 20 {
		g := limiter.NewGroupAt(limiter.GroupConfig[int]{Rate: limiter.PerSecond(1), Burst: 1, MaxKeys: 3}, start)
		for key := range 3 {
			require.True(t, g.Get(key).TakeAt(start, 1).OK)
		}
		allowed := 0
		for key := range 100 {
			if g.Get(10+key).TakeAt(start.Add(10*sec), 1).OK {
				allowed++
			}
		}
		require.Equal(t, 3, allowed)
		require.Equal(t, 3, g.Len())
		require.EqualValues(t, 3, g.Evictions())
	}
}

func TestANewKeyEvictsFewKeys(t *testing.T) {
	for idle, few := range map[int]int64{2: 1, 100: 50} {
		for range 30 {
			g := limiter.NewGroupAt(limiter.GroupConfig[int]{Rate: limiter.PerSecond(1), Burst: 1, MaxKeys: 100}, start)
			for key := range idle {
				require.True(t, g.Get(key).TakeAt(start, 1).OK)
			}
			require.True(t, g.Get(-1).TakeAt(start.Add(10*sec), 1).OK)
			require.LessOrEqual(t, g.Evictions(), few, "of %d idle keys", idle)
		}
	}
}

// A caller at the exact rate is up to a nanosecond late, and its bucket is full by then. That does
// not make its key idle: new keys, which come first each time, do not evict it.
func TestAKeyAtTheExactRateIsNotEvicted(t *testing.T) {
	g := limiter.NewGroupAt(limiter.GroupConfig[int]{Rate: limiter.PerSecond(3), Burst: 1, MaxKeys: 1}, start)
	for i := range 30 {
		at := start.Add((time.Duration(i)*sec + 2) / 3)
		for other := range 20 {
			if i > 0 {
				g.Get(1+other).TakeAt(at, 1)
			}
		}
		require.True(t, g.Get(0).TakeAt(at, 1).OK, "token %d", i)
	}
}

func TestARaisedBurstFillsAtTheRateForNewKeys(t *testing.T) {
	g := newGroup(limiter.GroupConfig[string]{Rate: limiter.PerSecond(1), Burst: 2})
	runSteps(t, keyLimiter{g, "ann"}, step{0, 1, "ok"})
	require.NoError(t, g.SetLimitsAt(start.Add(10*sec), limiter.Tier{Rate: limiter.PerSecond(1), Burst: 5}))
	for _, who := range []string{"ann", "bob"} {
		runSteps(t, keyLimiter{g, who}, step{10 * sec, 0, "ok 2/5 reset 3s"}, step{11 * sec, 4, "refused 3/5 retry 1s reset 2s"}, step{12 * sec, 4, "ok 0/5 reset 5s"})
	}
}

func TestAChangeOfTierRestoresNoEvictedKey(t *testing.T) {
	for range 20 {
		g := newGroup(limiter.GroupConfig[string]{Rate: limiter.PerSecond(1), Burst: 1, MaxKeys: 1})
		runSteps(t, keyLimiter{g, "ann"}, step{0, 1, "ok"})
		runSteps(t, keyLimiter{g, "bob"}, step{10 * sec, 1, "ok"})
		require.NoError(t, g.SetLimitsAt(start.Add(10*sec), limiter.Tier{Rate: limiter.PerSecond(2), Burst: 1}))
		runSteps(t, keyLimiter{g, "cid"}, step{20 * sec, 1, "ok"})
		require.Equal(t, 1, g.Len())
		require.EqualValues(t, 2, g.Evictions())
	}
}

// A key whose bucket has been full since the first time can still be evicted.
func TestAKeyThatWasAlwaysFullIsEvicted(t *testing.T) {
	for name, fill := range map[string]func(g *limiter.Group[string]){
		"refunds": func(g *limiter.Group[string]) {
			for range 10 {
				g.Get("ann").RefundNow(10)
			}
		},
		"unlimited for a while": func(g *limiter.Group[string]) {
			require.NoError(t, g.SetLimitsAt(start, limiter.Tier{Rate: limiter.Unlimited()}))
			runSteps(t, keyLimiter{g, "ann"}, step{0, 1000, "ok"})
			require.NoError(t, g.SetLimitsAt(start, limiter.Tier{Rate: limiter.Per(1, year), Burst: 10}))
		},
	} {
		g := newGroup(limiter.GroupConfig[string]{Rate: limiter.Per(1, year), Burst: 10, MaxKeys: 1})
		runSteps(t, keyLimiter{g, "ann"}, step{0, 1, "ok"})
		fill(g)
		require.Equal(t, 1, g.Len(), name)
		require.True(t, g.Get("bob").TakeAt(start, 10).OK, name)
		require.Equal(t, 1, g.Len(), name)
		require.EqualValues(t, 1, g.Evictions(), name)
	}
}

func TestARefusalWithoutRoomAtAVeryEarlyTime(t *testing.T) {
	g := newGroup(limiter.GroupConfig[string]{Rate: limiter.PerSecond(3), Burst: 1, MaxKeys: 1})
	runSteps(t, keyLimiter{g, "ann"}, step{0, 1, "ok"})
	r := g.Get("bob").TakeAt(time.Time{}, 1)
	require.False(t, r.OK)
	require.InDelta(t, sec/3, r.RetryAfter, 1)
}

func TestAHoldOfZeroHoldsNoKey(t *testing.T) {
	g := newGroup(limiter.GroupConfig[string]{Rate: limiter.PerSecond(1), Burst: 3})
	g.Get("ann").HoldAt(start, 0)
	g.Get("bob").HoldAt(start, -sec)
	free := newGroup(limiter.GroupConfig[string]{Rate: limiter.Unlimited()})
	free.Get("ann").HoldAt(start, hour)
	require.Zero(t, g.Len()+free.Len(), "the key is not remembered")
	runSteps(t, keyLimiter{g, "ann"}, step{0, 3, "ok"})
	runSteps(t, keyLimiter{g, "bob"}, step{0, 3, "ok"})
}

func TestHoldAtTheBoundsOfTime(t *testing.T) {
	b := newBucket(limiter.PerSecond(1), 3)
	b.HoldAt(start, 0)
	b.HoldAt(start, -1)
	runSteps(t, b, step{0, 0, "ok 3/3 reset 0s"})
	b.HoldAt(time.Time{}, hour) // ended long ago
	runSteps(t, b, step{0, 0, "ok 3/3 reset 0s"})
	b.HoldAt(start.Add(100*year), limiter.Never)
	runSteps(t, b, step{100 * year, 1, "refused"})
}

func TestTakeDoesNotOvertakeTheFirstWaiterOfAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := realGroup(limiter.GroupConfig[string]{Rate: limiter.PerSecond(1), Burst: 5})
		g.Get("ann").Take(5)
		l := newCallers(t, g.Get("ann"))
		l.start(t.Context(), "two", 2)
		later := time.Now().Add(5 * sec) // then there are tokens for both
		require.Equal(t, "refused 0/5 retry 1ns reset 2s", resultText(g.Get("ann").TakeAt(later, 1)))
		require.Zero(t, g.Get("ann").TakeAt(later, 0).Remaining)
		l.requireResults(arrival{"two", 2 * sec, nil})
	})
}

// After the last waiter has left, the group keeps neither the queue nor the key in it.
func TestTheQueueOfAKeyIsRemoved(t *testing.T) {
	type key struct {
		name string
		_    [100]byte
	}
	g := limiter.NewGroup(limiter.GroupConfig[*key]{Rate: limiter.PerSecond(1), Burst: 1})
	var keys []weak.Pointer[key]
	for i := range 100 {
		k := &key{name: fmt.Sprint(i)}
		keys = append(keys, weak.Make(k))
		require.ErrorIs(t, g.Get(k).Wait(t.Context(), 2), limiter.ErrLimited)
	}
	runtime.GC()
	kept := 0
	for _, k := range keys {
		if k.Value() != nil {
			kept++
		}
	}
	runtime.KeepAlive(g)
	require.LessOrEqual(t, kept, 1, "the last queue may still be reachable")
}

func TestAnUnlimitedGroupShowsNoLimit(t *testing.T) {
	g := newGroup(limiter.GroupConfig[string]{Rate: limiter.Unlimited(), Name: "logins"})
	figures := readMetrics(t, g)
	require.NotContains(t, figures, instrument.LimiterLimit.Name)
	require.NotContains(t, figures, instrument.LimiterPeriod.Name)
	require.Contains(t, figures, instrument.LimiterKeys.Name)
}

func TestAJointRefusesWhileACallerWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := limiter.NewJoint("", limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: 3}))
		require.True(t, all.Take(2).OK)
		l := newCallers(t, all)
		l.start(t.Context(), "two", 2)
		r := all.Take(1)
		require.False(t, r.OK, "the one token is for the waiter")
		require.Positive(t, r.RetryAfter)
		require.Zero(t, r.Remaining)
		require.Zero(t, all.Take(0).Remaining)
		l.requireResults(arrival{"two", sec, nil})
	})
}

func TestWaitOfAJointFailsAtOnceIfItWouldTakeTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := limiter.NewJoint("", limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: 3}))
		require.True(t, all.Take(3).OK)
		began := time.Now()
		err := limiter.WaitAtMost(t.Context(), all, 2, 2*sec-1)
		require.EqualError(t, err, "limiter: no tokens left (limit 3), retry in 2s")
		ctx, cancel := context.WithTimeout(t.Context(), 2*sec-1)
		defer cancel()
		err = all.Wait(ctx, 2)
		require.EqualError(t, err, "limiter: deadline cannot be met (limit 3), retry in 2s")
		require.Zero(t, time.Since(began))
		require.NoError(t, limiter.WaitAtMost(t.Context(), all, 2, 2*sec))
	})
}

// rivalCallers is a limiter whose tokens other callers take right after each peek.
type rivalCallers struct{ limiter.TimedLimiter }

func (l rivalCallers) TakeAt(t time.Time, n int) limiter.Result {
	r := l.TimedLimiter.TakeAt(t, n)
	if n == 0 {
		l.TimedLimiter.TakeAt(t, r.Remaining)
	}
	return r
}

func TestAJointGivesBackTokensAfterALateRefusal(t *testing.T) {
	before, after := newSlidingLog(5, sec), newSlidingLog(5, sec)
	rivals := func() limiter.TimedLimiter { return rivalCallers{newSlidingLog(5, sec)} }
	runSteps(t, limiter.NewJoint("", before, rivals(), after), step{0, 2, "refused 0/5 retry 1s reset 1s"})
	runSteps(t, before, step{0, 0, "ok 5/5 reset 0s"})
	runSteps(t, after, step{0, 0, "ok 5/5 reset 0s"})
}

func TestTierOfIsCalledWithoutALock(t *testing.T) {
	t0 := time.Unix(1000, 0)
	var g *limiter.Group[int]
	asked := 0
	g = limiter.NewGroupAt(limiter.GroupConfig[int]{
		Rate: limiter.PerSecond(1), MaxKeys: 10, Tiers: []limiter.Tier{{Rate: limiter.PerSecond(2)}},
		TierOf: func(int) int {
			asked++
			if g != nil {
				g.Evictions() // takes every lock of the group
			}
			return -1
		},
	}, t0)
	g.Get(1).HoldAt(t0, time.Second)
	asked = 0
	require.True(t, g.Get(2).TakeAt(t0.Add(time.Hour), 1).OK, "it drops the hold of the other key, which has ended")
	require.Equal(t, 1, asked, "once per decision")
}
