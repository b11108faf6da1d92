package limiter_test

import (
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
)

func TestSetRateAfterIdleTime(t *testing.T) { // scenario 3
	synctest.Test(t, func(t *testing.T) {
		b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1e-18), Burst: 1})
		require.True(t, b.Take(1).OK)
		time.Sleep(hour)
		require.False(t, b.Take(1).OK)
		require.NoError(t, b.SetRate(limiter.PerSecond(10)))
		began := time.Now()
		require.NoError(t, b.Wait(t.Context(), 1))
		require.Equal(t, tick, time.Since(began).Round(time.Microsecond))
	})
}

func TestSetRateAppliesToWaiters(t *testing.T) { // scenario 32
	synctest.Test(t, func(t *testing.T) {
		b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: 1})
		b.Take(1)
		l := newCallers(t, b)
		for _, who := range []string{"a", "b", "c", "d", "e"} {
			l.start(t.Context(), who, 1)
		}
		require.NoError(t, b.SetRate(limiter.PerSecond(10)))
		time.Sleep(250 * ms)
		require.NoError(t, b.SetRate(limiter.PerSecond(1)))
		// half a token is missing then
		l.requireResults(arrival{"a", 100 * ms, nil}, arrival{"b", 200 * ms, nil},
			arrival{"c", 750 * ms, nil}, arrival{"d", 1750 * ms, nil}, arrival{"e", 2750 * ms, nil})
	})
}

func TestSetBurstRefusesWaitersAboveTheNewBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: 5})
		b.Take(5)
		l := newCallers(t, b)
		l.start(t.Context(), "big", 4)
		l.start(t.Context(), "small", 1)
		require.NoError(t, b.SetBurst(3))
		l.all.Wait()
		require.ErrorIs(t, l.log[0].err, limiter.ErrLimited)
		require.EqualError(t, l.log[0].err, "limiter: more than the limit (limit 3)")
		require.Equal(t, arrival{"small", sec, nil}, l.log[1])
	})
}

func TestSetRateKeepsDebtInTokens(t *testing.T) { // scenario 33
	b := newBucket(limiter.PerSecond(5), 2)
	reserve(t, b, 0, 2, 0)
	reserve(t, b, 0, 2, 4*tick)
	require.NoError(t, b.SetRateAt(start.Add(2*tick), limiter.PerSecond(10)))
	reserve(t, b, 2*tick, 1, 4*tick)

	b = newBucket(limiter.PerSecond(5), 2)
	reserve(t, b, 0, 2, 0)
	reserve(t, b, 0, 2, 4*tick)
	require.NoError(t, b.SetBurstAt(start.Add(3*tick), 4))
	reserve(t, b, 3*tick, 4, 12*tick) // half a token is owed at t3
}

// Scenario 34, in its simplest form: tokens are kept, up to the new burst.
func TestSetBurstKeepsTokens(t *testing.T) {
	for _, c := range []struct{ have, burst, want int }{{40, 200, 40}, {40, 20, 20}, {10, 100, 10}, {100, 200, 100}} {
		b := newBucket(limiter.Per(1, time.Hour), 100)
		require.True(t, b.TakeAt(start, 100-c.have).OK)
		require.NoError(t, b.SetBurstAt(start, c.burst))
		r := b.TakeAt(start, 0)
		require.Equal(t, c.want, r.Remaining)
		require.Equal(t, c.burst, r.Limit)
	}
}

func TestSetRateKeepsTokens(t *testing.T) {
	for _, r := range []limiter.Rate{limiter.PerSecond(3), limiter.PerSecond(1e6), limiter.Per(7, time.Hour), limiter.PerSecond(4e9), limiter.Per(1, 100*year)} {
		b := newBucket(limiter.PerSecond(10), 20)
		runSteps(t, b, step{0, 13, "ok"})
		require.NoError(t, b.SetRateAt(start, r))
		require.InDelta(t, 7, b.TokensAt(start), 1e-6, r)
		require.LessOrEqual(t, b.TokensAt(start), 7.0, "no more tokens than before")
		require.Equal(t, 20, b.TakeAt(start, 0).Limit)

		b = newBucket(limiter.PerSecond(10), 20)
		runSteps(t, b, step{0, 20, "ok"})
		b.ReserveAt(start, 8, limiter.Never)
		require.NoError(t, b.SetRateAt(start.Add(7), r))
		require.InDelta(t, -8, b.TokensAt(start.Add(7)), 1e-6, r)
		require.LessOrEqual(t, b.TokensAt(start.Add(7)), -7.99999993, "debt is kept")
	}
}

func TestChangesToAndFromUnlimited(t *testing.T) {
	b := newBucket(limiter.PerSecond(1), 5)
	runSteps(t, b, step{0, 5, "ok"})
	require.NoError(t, b.SetRateAt(start, limiter.Unlimited()))
	runSteps(t, b, step{0, 1e9, "ok"})
	require.True(t, math.IsInf(b.TokensAt(start), 1))
	require.True(t, b.ReserveAt(start, 1e9, 0).OK)
	require.NoError(t, b.SetRateAt(start.Add(sec), limiter.PerSecond(1)))
	runSteps(t, b, step{sec, 5, "ok 0/5 reset 5s"}, step{sec, 1, "refused"})
}

func TestTheDefaultBurstFollowsTheRate(t *testing.T) {
	b := newBucket(limiter.PerSecond(5), 0)
	require.NoError(t, b.SetRateAt(start, limiter.PerSecond(50)))
	runSteps(t, b, step{0, 0, "ok 5/50 reset 900ms"})
	require.NoError(t, b.SetBurstAt(start, 10))
	require.NoError(t, b.SetRateAt(start, limiter.PerSecond(5)))
	runSteps(t, b, step{0, 0, "ok 5/10 reset 1s"})
}

func TestInvalidChangesChangeNothing(t *testing.T) {
	b := newBucket(limiter.PerSecond(1), 5)
	require.EqualError(t, b.SetRate(limiter.PerSecond(-1)), "limiter: Rate is -1/s, must be above 0")
	require.EqualError(t, b.SetBurst(0), "limiter: Burst is 0, must be at least 1")
	require.EqualError(t, b.SetBurst(-2), "limiter: Burst is -2, must be at least 1 (or 0 for the default, or Off)")
	runSteps(t, b, step{0, 5, "ok 0/5 reset 5s"})
}

// A request sees a rate and a burst that belong together, and no request is lost during a change.
func TestChangesDuringTraffic(t *testing.T) {
	b := newBucket(limiter.PerSecond(1), 1000)
	var taken atomic.Int64
	callAtOnce(4, func() bool {
		for i := range 3000 {
			switch {
			case i%50 == 0:
				_ = b.SetRateAt(start, limiter.PerSecond(float64(1+i%7)))
			case i%77 == 0:
				b.ReserveAt(start, 1, 0).CancelAt(start)
			case b.TakeAt(start, 1).OK:
				taken.Add(1)
			}
		}
		return true
	})
	require.InDelta(t, 1000, taken.Load(), 1, "each change may round down by the smallest part of a token")
	require.LessOrEqual(t, taken.Load(), int64(1000))
}

// A request during a change is not refused because of it.
func TestAChangeRefusesNoRequest(t *testing.T) {
	b := newBucket(limiter.PerSecond(1), 1_000_000)
	refused := callAtOnce(4, func() bool {
		for i := range 20_000 {
			if i%10 == 0 {
				_ = b.SetRateAt(start, limiter.PerSecond(float64(1+i%7)))
			}
			if !b.TakeAt(start, 1).OK || !b.TakeAt(start, 0).OK {
				return true
			}
		}
		return false
	})
	require.Zero(t, refused)
}

func TestABurstOfOffAllowsNothing(t *testing.T) {
	require.True(t, newBucket(limiter.Unlimited(), limiter.Off).TakeAt(start, 1).OK, "unless the rate is unlimited")

	b := newBucket(limiter.PerSecond(1), 5)
	require.NoError(t, b.SetBurstAt(start, limiter.Off))
	require.NoError(t, b.SetBurstAt(start.Add(sec), 5))
	runSteps(t, b, step{sec, 1, "refused 0/5 retry 1s reset 5s"}, step{2 * sec, 1, "ok"})

	require.NoError(t, b.SetRateAt(start.Add(2*sec), limiter.Unlimited()))
	require.NoError(t, b.SetRateAt(start.Add(3*sec), limiter.PerSecond(1)))
	require.Equal(t, 5, b.TakeAt(start.Add(3*sec), 0).Remaining, "a bucket that was unlimited is full")
}
