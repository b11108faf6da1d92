package limiter_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
)

// TakeFast takes only if TakeAt would, and otherwise changes nothing.
func TestTakeFastDecidesLikeTakeAt(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	allowed := 0
	for _, rate := range []limiter.Rate{limiter.PerSecond(10), limiter.PerSecond(3), limiter.PerMinute(7), limiter.Unlimited()} {
		take, admit := newBucket(rate, 5), newBucket(rate, 5)
		at := start
		for range 5000 {
			at = at.Add(time.Duration(r.IntN(400)-20) * ms)
			n := r.IntN(9) - 1
			want := take.TakeAt(at, n)
			if admit.TakeFast(at.Sub(start), n) {
				require.True(t, want.OK)
				allowed++
			} else {
				require.Equal(t, want, admit.TakeAt(at, n))
			}
			switch r.IntN(50) {
			case 0:
				take.Refund(1)
				admit.Refund(1)
			case 1:
				burst := 1 + r.IntN(9)
				require.NoError(t, take.SetBurstAt(at, burst))
				require.NoError(t, admit.SetBurstAt(at, burst))
			}
			require.InDelta(t, take.TokensAt(at), admit.TokensAt(at), 0)
		}
	}
	require.Greater(t, allowed, 1000, "TakeFast decides most requests")
	b := newBucket(limiter.Per(1, time.Hour), 1<<30)
	require.Zero(t, testing.AllocsPerRun(100, func() { b.TakeFast(0, 1); b.TakeFast(0, math.MaxInt32) }))
}

func TestTakeFastRefusesWhileACallerWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: 3})
		l := newCallers(t, b)
		b.Take(2)
		l.start(t.Context(), "two", 2)
		require.False(t, b.TakeFast(0, 1), "the one token is for the waiter")
		require.Equal(t, "refused 0/3 retry 2s reset 4s", resultText(b.Take(1)))
		l.requireResults(arrival{"two", sec, nil})
	})
}
