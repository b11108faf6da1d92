package limiter_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/limiter/guava"
)

// Methods without At do on the real clock what those with At do at given times.
func TestTheRealClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: 5})
		require.True(t, b.Take(5).OK)
		r := b.Reserve(2, limiter.Never)
		require.Equal(t, 2*sec, r.Delay)
		time.Sleep(sec)
		require.InDelta(t, -1, b.Tokens(), 1e-9)
		r.Refund(2)
		require.InDelta(t, 1, b.Tokens(), 1e-9)
		b.Hold(10 * sec)
		require.Equal(t, 10*sec, b.Take(1).RetryAfter)

		require.Equal(t, 10*sec, limiter.NewJoint("", b).Take(1).RetryAfter)

		s := guava.NewSmoothBursty(guava.SmoothBurstyConfig{Rate: limiter.PerSecond(1)})
		for _, want := range []time.Duration{0, sec} {
			wait, ok := s.Reserve(1, sec)
			require.True(t, ok)
			require.Equal(t, want, wait)
		}
		_, ok := s.Reserve(1, sec)
		require.False(t, ok)

		g := limiter.NewGroup(limiter.GroupConfig[int]{Rate: limiter.PerSecond(1), Burst: 1})
		require.True(t, g.Get(7).Take(1).OK)
		time.Sleep(sec / 2)
		require.NoError(t, g.SetLimits(limiter.Tier{Rate: limiter.PerSecond(5), Burst: 1}))
		require.Equal(t, 100*ms, g.Get(7).Take(1).RetryAfter)
	})
}

func TestReserveRefusesWhileACallerWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: 5})
		b.Take(5)
		l := newCallers(t, b)
		l.start(t.Context(), "head", 1)
		r := b.Reserve(1, limiter.Never)
		require.False(t, r.OK)
		require.Equal(t, 2*sec, r.RetryAfter)
		l.requireResults(arrival{"head", sec, nil})
	})
}
