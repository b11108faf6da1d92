package limiter_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
)

// Scenario 71: a failed login costs five tokens, and a service that says when to retry gets no
// request until then.
func TestPenalties(t *testing.T) {
	b := newBucket(limiter.PerSecond(1), 6)
	runSteps(t, b, step{0, 1, "ok 5/6 reset 1s"})
	reserve(t, b, 0, 5, 0) // the login has failed
	runSteps(t, b, step{0, 1, "refused 0/6 retry 1s reset 6s"})
	reserve(t, b, 0, 5, 5*sec) // the next one makes a debt
	runSteps(t, b, step{0, 1, "refused 0/6 retry 6s reset 11s"})

	b = newBucket(limiter.PerSecond(10), 6)
	runSteps(t, b, step{0, 1, "ok"})
	b.HoldAt(start, 30*sec)
	runSteps(t, b, step{0, 1, "refused 0/6 retry 30s reset 30.5s"}, step{30*sec - 1, 1, "refused"},
		step{30 * sec, 2, "refused"}, step{30 * sec, 1, "ok 0/6 reset 600ms"})
	b.HoldAt(start.Add(30*sec), -sec)
	b.HoldAt(start.Add(30*sec), 50*ms) // shorter than the debt
	runSteps(t, b, step{30 * sec, 1, "refused 0/6 retry 100ms reset 600ms"})
	b.HoldAt(start.Add(30*sec), 1<<63-1)
	runSteps(t, b, step{100 * year, 1, "refused"})

	free := newBucket(limiter.Unlimited(), 1)
	free.HoldAt(start, time.Hour)
	runSteps(t, free, step{hour - 1, 1, "refused"}, step{hour - 1, 0, "refused"}, step{hour, 1000, "ok"})
}

// adjustableLimiter is a limiter whose rate, burst and hold can be set at given times.
type adjustableLimiter interface {
	limiter.TimedLimiter
	set(at time.Duration, r limiter.Rate, burst int)
	hold(at, d time.Duration)
}

type adjustableBucket struct{ *limiter.TokenBucket }

func (b adjustableBucket) hold(at, d time.Duration) { b.HoldAt(start.Add(at), d) }

func (b adjustableBucket) set(at time.Duration, r limiter.Rate, burst int) {
	_ = b.SetBurstAt(start.Add(at), burst)
	_ = b.SetRateAt(start.Add(at), r)
}

type adjustableKey struct{ keyLimiter }

func (k adjustableKey) hold(at, d time.Duration) { k.Group.Get(k.key).HoldAt(start.Add(at), d) }

func (k adjustableKey) set(at time.Duration, r limiter.Rate, burst int) {
	_ = k.Group.SetLimitsAt(start.Add(at), limiter.Tier{Rate: r, Burst: burst})
}

func adjustableLimiters(r limiter.Rate, burst int) map[string]adjustableLimiter {
	return map[string]adjustableLimiter{
		"bucket": adjustableBucket{newBucket(r, burst)},
		"key":    adjustableKey{keyLimiter{newGroup(limiter.GroupConfig[string]{Rate: r, Burst: burst}), "k"}},
	}
}

// The rate changes before, during and after the hold. No token is allowed before the hold ends, and
// one token is allowed at that moment.
func TestAHoldEndsOnTimeWhateverTheRateBecomes(t *testing.T) {
	rates := []limiter.Rate{limiter.PerSecond(1000), limiter.PerSecond(3), limiter.Per(1, time.Hour), limiter.Unlimited(), limiter.Per(1, 24*hour)}
	for _, from := range rates {
		for _, to := range rates {
			for name, l := range adjustableLimiters(from, 1000) {
				why := fmt.Sprint(name, ": ", from, " to ", to)
				l.TakeAt(start, 7)
				l.hold(0, 10*sec)
				l.set(sec, to, 500)
				limiter.Refund(l, 1000)
				l.hold(2*sec, sec) // a shorter hold has no effect
				for _, at := range []time.Duration{2 * sec, 10*sec - 1} {
					r := l.TakeAt(start.Add(at), 1)
					require.False(t, r.OK, "%s at %s", why, at)
					require.Equal(t, 10*sec-at, r.RetryAfter, "%s at %s", why, at)
					require.Zero(t, r.Remaining, "%s at %s", why, at)
					require.False(t, l.TakeAt(start.Add(at), 0).OK, "%s at %s", why, at)
				}
				require.Equal(t, to == limiter.Unlimited(), l.TakeAt(start.Add(10*sec), 2).OK, "%s: a hold does not end with a burst", why)
				require.True(t, l.TakeAt(start.Add(10*sec), 1).OK, why)
			}
		}
	}
}

func TestAfterAHoldTokensAreAddedAtTheCurrentRate(t *testing.T) {
	for _, l := range adjustableLimiters(limiter.PerSecond(10), 100) {
		l.hold(0, 10*sec)
		l.set(12*sec, limiter.PerSecond(1), 100) // there are 21 tokens
		runSteps(t, l, step{12 * sec, 22, "refused 21/100 retry 1s reset 1m19s"}, step{13 * sec, 22, "ok"})
		l.hold(13*sec, sec)
		l.hold(13*sec+1, 5*sec) // a longer hold extends it
		runSteps(t, l, step{18 * sec, 1, "refused 0/100 retry 1ns reset 1m39.000000001s"}, step{18*sec + 1, 1, "ok"})
	}
}

func TestDebtOutlastsAHold(t *testing.T) {
	b := newBucket(limiter.PerSecond(1), 5)
	reserve(t, b, 0, 5, 0)
	reserve(t, b, 0, 5, 5*sec)
	b.HoldAt(start, 2*sec)
	require.InDelta(t, -5, b.TokensAt(start), 1e-9)
	require.NoError(t, b.SetRateAt(start.Add(sec), limiter.PerSecond(2)))
	runSteps(t, b, step{sec, 1, "refused 0/5 retry 2.5s reset 4.5s"}, step{3500 * ms, 1, "ok"})
}

func TestNothingIsReservedDuringAHold(t *testing.T) {
	b := newBucket(limiter.PerSecond(1), 5)
	b.HoldAt(start, 10*sec)
	r := b.ReserveAt(start, 1, limiter.Never)
	require.False(t, r.OK)
	require.Equal(t, 10*sec, r.RetryAfter)
	require.Zero(t, b.TokensAt(start))
	require.False(t, b.ReserveAt(start, 0, limiter.Never).OK)
	require.False(t, b.TakeFast(10*sec-1, 1))
	require.True(t, b.TakeFast(10*sec, 1))
	free := newBucket(limiter.Unlimited(), 1)
	free.HoldAt(start, 10*sec)
	require.False(t, free.ReserveAt(start, 1, limiter.Never).OK)
	require.Zero(t, free.TokensAt(start))
}

// unholdableLimiter is a limiter without a hold and without a period.
type unholdableLimiter struct{ limiter.Limiter }

func TestHoldReachesTheLimitersOfAJoint(t *testing.T) {
	fresh := func() *limiter.TokenBucket {
		return limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Per(1, time.Hour), Burst: 5})
	}
	for name, l := range map[string]limiter.TimedLimiter{
		"named": limiter.NewJoint("x", fresh()),
		"joint": limiter.NewJoint("", newFixedWindow(100, time.Hour), fresh()),
		"both":  limiter.NewJoint("x", limiter.NewJoint("", fresh(), fresh())),
	} {
		l.(holdableLimiter).Hold(24 * time.Hour)
		require.Greater(t, l.Take(1).RetryAfter, 23*time.Hour, name)
	}
	rest := limiter.NewJoint("x", unholdableLimiter{fresh()})
	rest.Hold(24 * time.Hour)
	require.True(t, rest.Take(1).OK)
}

func TestAJointOfOneHasThePeriodOfItsLimiter(t *testing.T) {
	require.Equal(t, time.Minute, limiter.PeriodOf(limiter.NewJoint("x", newFixedWindow(10, time.Minute))))
	require.Zero(t, limiter.PeriodOf(limiter.NewJoint("x", unholdableLimiter{newFixedWindow(10, time.Minute)})))
}

// holdableLimiter is a limiter that can be held.
type holdableLimiter interface{ Hold(d time.Duration) }
