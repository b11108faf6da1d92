package limiter_test

import (
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
)

// Scenario 10.
func TestTokenBucketKeepsHighRates(t *testing.T) {
	for _, perSecond := range []float64{1e6, 2e6, 3e6 + 7, 1e9, 1234567890.123, 3e9, 3999999999.1234567, 4e9} {
		const burst, span = 4000, 10 * ms
		b, allowed := newBucket(limiter.PerSecond(perSecond), burst), 0
		for at := time.Duration(0); at <= span; at += time.Microsecond {
			n := b.TakeAt(start.Add(at), 0).Remaining
			require.True(t, n == 0 || b.TakeAt(start.Add(at), n).OK, "%g/s: the remaining tokens can be taken", perSecond)
			allowed += n
		}
		expected := perSecond*span.Seconds() + burst
		require.InEpsilon(t, expected, allowed, 0.001, "%g/s", perSecond)
		require.LessOrEqual(t, float64(allowed), expected, "%g/s", perSecond)
	}
}

// Scenario 11.
func TestTokenBucketDoesNotDrift(t *testing.T) {
	for _, c := range []struct {
		rate   limiter.Rate
		events int
		in     time.Duration
	}{
		{limiter.PerSecond(3), 3 * 36000, 10 * hour},
		{limiter.PerMinute(7), 7 * 600, 10 * hour},
		{limiter.Per(10, 13*sec), 27690, 35997 * sec},
		{limiter.Per(1, time.Hour), 10, 10 * hour},
	} {
		b := newBucket(c.rate, 4)
		allowed := offerEvenly(b, 10*c.events, c.in)
		require.InDelta(t, float64(c.events+4), float64(allowed), 1, c.rate)
		require.LessOrEqual(t, allowed, c.events+4, c.rate)
	}
}

// Scenario 12: requests at the exact rate are never refused, and nothing drifts in a year.
func TestTokenBucketAllowsTheExactRate(t *testing.T) {
	for _, rate := range []struct{ events, period int64 }{
		{3, int64(sec)}, {7, int64(sec)}, {1, int64(13 * ms)}, {1, int64(7 * sec)}, {1, int64(hour)}, {1000003, int64(sec)}, {10, int64(13 * sec)},
	} {
		r := limiter.Per(float64(rate.events), time.Duration(rate.period))
		due := func(k int64) time.Duration { // the time of the k-th token, rounded up
			whole, part := k/rate.events, k%rate.events
			return time.Duration(whole*rate.period + (part*rate.period+rate.events-1)/rate.events)
		}
		b := newBucket(r, 1)
		for k := range int64(100_000) {
			require.True(t, b.TakeAt(start.Add(due(k)), 1).OK, "%s: call %d", r, k)
		}
		k := int64(year) / rate.period * rate.events
		b = limiter.NewTokenBucketAt(limiter.TokenBucketConfig{Rate: r, Burst: 1}, start)
		for i := range int64(1000) {
			at := start.Add(due(k + i))
			require.True(t, b.TakeAt(at, 1).OK, "%s: call %d after a year", r, i)
			require.False(t, b.TakeAt(at, 1).OK, "%s: a second call %d after a year", r, i)
		}
	}
}

// Scenario 14.
func TestTokenBucketNeverExceedsItsBurstWhenIdle(t *testing.T) {
	for _, idle := range []time.Duration{5 * year, 20 * year, math.MaxInt64} {
		for _, r := range []limiter.Rate{limiter.PerSecond(3), limiter.PerSecond(3e9), limiter.Per(1, time.Hour), limiter.PerSecond(1.9)} {
			b := newBucket(r, 7)
			runSteps(t, b, step{0, 7, "ok"}, step{0, 1, "refused"}, step{idle, 7, "ok"}, step{idle, 1, "refused"})
		}
	}
}

// Scenario 17.
func TestTokenBucketNeverAllowsTooManyAtOnce(t *testing.T) {
	b := newBucket(limiter.PerSecond(1), 5)
	require.Equal(t, 5, callAtOnce(15, func() bool { return b.TakeAt(start, 1).OK }))

	b = newBucket(limiter.PerSecond(100), 100)
	allowed := 0
	for i := range 5*500/8 + 1 {
		at := start.Add(time.Duration(i) * 16 * ms)
		allowed += callAtOnce(8, func() bool { return b.TakeAt(at, 1).OK })
	}
	require.InDelta(t, 600, allowed, 1)
}

// Scenario 52.
func TestTokenBucketAllowsItsRateUnderLoad(t *testing.T) {
	require.InDelta(t, 1100, offerEvenly(newBucket(limiter.PerSecond(100), 100), 10_000, 10*sec), 1)
}

// Stress on the real clock: no more tokens are taken than burst and rate allow.
func TestTokenBucketStress(t *testing.T) {
	for _, r := range []limiter.Rate{limiter.PerSecond(1e6), limiter.PerSecond(999_983)} {
		b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: r, Burst: 100})
		began := time.Now()
		var allowed atomic.Int64
		callAtOnce(8, func() bool {
			for i := range 20_000 {
				if n := 1 + i%3; b.Take(n).OK {
					allowed.Add(int64(n))
					if i%5 == 0 {
						b.Refund(n)
						allowed.Add(int64(-n))
					}
				}
			}
			return true
		})
		require.LessOrEqual(t, float64(allowed.Load()), 101+1e6*time.Since(began).Seconds())
		require.Positive(t, allowed.Load())
	}
}

// callAtOnce calls f on n goroutines at once and returns how many times it returned true.
func callAtOnce(n int, f func() bool) int {
	var yes atomic.Int64
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			if f() {
				yes.Add(1)
			}
		})
	}
	all.Wait()
	return int(yes.Load())
}
