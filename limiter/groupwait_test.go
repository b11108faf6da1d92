package limiter_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
)

func realGroup(c limiter.GroupConfig[string]) *limiter.Group[string] { return limiter.NewGroup(c) }

func TestEachKeyHasAQueueOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := realGroup(limiter.GroupConfig[string]{Rate: limiter.PerSecond(1), Burst: 2})
		ann, bob := newCallers(t, g.Get("ann")), newCallers(t, g.Get("bob"))
		ann.start(t.Context(), "both", 2)
		ann.start(t.Context(), "first", 1)
		ann.start(t.Context(), "second", 2)
		bob.start(t.Context(), "bob", 2)
		require.Equal(t, "refused 0/2 retry 4s reset 5s", resultText(g.Get("ann").Take(1)), "another caller waits for three tokens")
		require.Equal(t, "refused 0/2 retry 1s reset 2s", resultText(g.Get("bob").Take(1)), "no caller waits for bob")
		ann.requireResults(arrival{"both", 0, nil}, arrival{"first", sec, nil}, arrival{"second", 3 * sec, nil})
		bob.requireResults(arrival{"bob", 0, nil})
		require.Equal(t, "refused 0/2 retry 1s reset 2s", resultText(g.Get("ann").Take(1)), "the queue has been removed")
	})
}

func TestAWaiterThatLeavesTheQueueOfAKeyOwesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := realGroup(limiter.GroupConfig[string]{Rate: limiter.PerSecond(1), Burst: 1, MaxWaiters: 1})
		g.Get("ann").Take(1)
		l := newCallers(t, g.Get("ann"))
		ctx, leave := context.WithCancel(t.Context())
		l.start(ctx, "leaves", 1)
		requireQueueFull(t, g.Get("ann").Wait(t.Context(), 1))
		require.NoError(t, limiter.WaitAtMost(t.Context(), g.Get("bob"), 1, -1))
		leave()
		l.requireResults(arrival{"leaves", 0, context.Canceled})
		time.Sleep(sec)
		require.True(t, g.Get("ann").Take(1).OK)
		require.ErrorIs(t, limiter.WaitAtMost(t.Context(), g.Get("ann"), 1, sec-1), limiter.ErrLimited)
		require.NoError(t, limiter.WaitAtMost(t.Context(), g.Get("ann"), 1, sec))
	})
}

func TestRefundAndSetRateWakeTheWaitersOfAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := realGroup(limiter.GroupConfig[string]{Rate: limiter.Per(1, time.Hour), Burst: 1})
		g.Get("ann").Take(1)
		l := newCallers(t, g.Get("ann"))
		l.start(t.Context(), "first", 1)
		l.start(t.Context(), "second", 1)
		time.Sleep(sec)
		g.Get("ann").RefundNow(1)
		synctest.Wait()
		time.Sleep(sec)
		require.NoError(t, g.SetLimits(limiter.Tier{Rate: limiter.PerSecond(1), Burst: 1}))
		l.all.Wait()
		require.Equal(t, arrival{"first", sec, nil}, l.log[0])
		require.Equal(t, "second", l.log[1].who)
		require.LessOrEqual(t, l.log[1].at, 3*sec)
	})
}

func TestGroupHoldsAKey(t *testing.T) {
	g := newGroup(limiter.GroupConfig[string]{Rate: limiter.PerSecond(1), Burst: 3, MaxKeys: 1})
	g.Get("ann").HoldAt(start, 30*sec)
	runSteps(t, keyLimiter{g, "ann"}, step{0, 1, "refused 0/3 retry 30s reset 32s"}, step{30 * sec, 1, "ok 0/3 reset 3s"})
	g.Get("ann").HoldAt(start.Add(30*sec), -sec)
	runSteps(t, keyLimiter{g, "ann"}, step{33 * sec, 3, "ok"})
	g.Get("bob").HoldAt(start.Add(33*sec), sec) // there is no room for this key
	require.Equal(t, 1, g.Len())
	free := newGroup(limiter.GroupConfig[string]{Rate: limiter.Unlimited()})
	free.Get("ann").HoldAt(start, time.Hour)
	require.False(t, free.Get("ann").TakeAt(start, 1).OK)
	require.True(t, free.Get("bob").TakeAt(start, 1).OK)

	synctest.Test(t, func(t *testing.T) {
		g := realGroup(limiter.GroupConfig[string]{Rate: limiter.PerSecond(1), Burst: 1})
		g.Get("ann").Hold(5 * sec)
		began := time.Now()
		require.NoError(t, g.Get("ann").Wait(t.Context(), 1))
		require.Equal(t, 5*sec, time.Since(began))
	})
}

func TestPeriodOfLimits(t *testing.T) {
	require.Equal(t, 5*sec, limiter.PeriodOf(newBucket(limiter.PerSecond(2), 10)))
	require.Equal(t, 3333333334*time.Nanosecond, limiter.PeriodOf(newBucket(limiter.PerSecond(3), 10)))
	require.Zero(t, limiter.PeriodOf(newBucket(limiter.Unlimited(), 0)))
	require.Zero(t, limiter.PeriodOf(newBucket(limiter.PerSecond(1), limiter.Off)))
	require.Equal(t, time.Minute, limiter.PeriodOf(newFixedWindow(3, time.Minute)))
	g := newGroup(limiter.GroupConfig[string]{Rate: limiter.PerMinute(1), Burst: 2})
	tokens, period := g.Limit()
	require.Equal(t, 2*time.Minute, period)
	require.Equal(t, 2, tokens)
}

func TestAGroupWithANameCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := realGroup(limiter.GroupConfig[string]{Rate: limiter.PerSecond(1), Burst: 10, Name: "logins"})
		require.Equal(t, "logins", g.Name())
		require.True(t, g.Get("ann").Take(9).OK)
		require.True(t, g.Get("bob").Take(1).OK)
		require.False(t, g.Get("ann").Take(2).OK)
		require.True(t, g.Get("ann").TakeAt(time.Now(), 0).OK)
		require.NoError(t, g.Get("ann").Wait(t.Context(), 4))
		err := limiter.WaitAtMost(t.Context(), g.Get("ann"), 1, 1)
		require.EqualError(t, err, "limiter logins: no tokens left (limit 10), retry in 1s")
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, g.Get("ann").Wait(cancelled, 1), context.Canceled)
		g.Get("ann").RefundNow(1)
		require.True(t, g.Get("ann").Take(1).OK)
		g.Get("bob").Hold(time.Hour)
		require.False(t, g.Get("bob").Take(1).OK)
		require.Equal(t, map[string]float64{
			"weir.limiter.requests allowed": 3, "weir.limiter.requests waited": 1, "weir.limiter.requests refused": 3, "weir.limiter.requests cancelled": 0,
			"weir.limiter.tokens allowed": 11, "weir.limiter.tokens waited": 4, "weir.limiter.tokens refused": 4, "weir.limiter.tokens cancelled": 0,
			"weir.limiter.near_limit": 2, "weir.limiter.waiting": 0, "weir.limiter.limit": 10, "weir.limiter.period": 10,
			"weir.limiter.group.size": 2, "weir.limiter.evictions": 0, "weir.limiter.no_room": 0,
		}, readMetrics(t, g))
		var shown []string
		for s, h := range g.Histograms {
			require.InDelta(t, 3, h.Sum, 1e-6)
			shown = append(shown, fmt.Sprint(s.Instrument.Name, s.Values, h.Count()))
		}
		require.Equal(t, []string{"weir.limiter.wait.duration[logins] 1"}, shown)
	})
}

func TestAGroupInShadowRefusesNothing(t *testing.T) {
	g := realGroup(limiter.GroupConfig[string]{Rate: limiter.Per(1, time.Hour), Burst: 1, Name: "logins", Shadow: true})
	for range 3 {
		require.NoError(t, g.Get("ann").Wait(t.Context(), 1))
		require.True(t, g.Get("bob").Take(1).OK)
	}
	require.EqualValues(t, 4, g.Stats().Shadowed)
	for range g.Histograms {
		t.Fatal("there is a histogram of waits, but no request has waited")
	}
	require.EqualError(t, limiter.GroupConfig[int]{Rate: limiter.PerSecond(1), Shadow: true}.Validate(),
		"limiter: Shadow is set without a Name, must have both")
}

// Callers wait for a few keys and leave or are served, while others take tokens. No more tokens are
// taken than the rate allows, and no queue is left.
func TestQueuesOfKeysDuringTraffic(t *testing.T) {
	g := realGroup(limiter.GroupConfig[string]{Rate: limiter.PerSecond(2000), Burst: 5})
	began := time.Now()
	var allowed [3]atomic.Int64
	var wg sync.WaitGroup
	for worker := range 12 {
		wg.Go(func() {
			key := worker % len(allowed)
			for i := range 60 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%7+1)*time.Millisecond)
				if g.Get(fmt.Sprint(key)).Wait(ctx, 1) == nil {
					allowed[key].Add(1)
				}
				cancel()
				if g.Get(fmt.Sprint(key)).Take(1).OK {
					allowed[key].Add(1)
				}
			}
		})
	}
	wg.Wait()
	most := 5 + int64(time.Since(began).Seconds()*2000) + 1
	for i := range allowed {
		require.Positive(t, allowed[i].Load())
		require.LessOrEqual(t, allowed[i].Load(), most)
	}
	for i := range allowed {
		before := time.Now()
		require.NoError(t, g.Get(fmt.Sprint(i)).Wait(t.Context(), 5))
		remaining := g.Get(fmt.Sprint(i)).Take(0).Remaining
		require.LessOrEqual(t, remaining, int(time.Since(before)/(500*time.Microsecond)), "the burst was taken")
	}
}
