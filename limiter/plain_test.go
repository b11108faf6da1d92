package limiter_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
)

// minimalLimiter is a limiter from outside this package that takes tokens back.
type minimalLimiter struct{ left int }

func (l *minimalLimiter) Take(n int) limiter.Result {
	if n < 0 || n > l.left {
		return limiter.Result{Limit: 5, Remaining: l.left, RetryAfter: limiter.Never}
	}
	l.left -= n
	return limiter.Result{OK: true, Limit: 5, Remaining: l.left}
}

func (l *minimalLimiter) Refund(_ time.Time, n int) { l.left = min(l.left+n, 5) }

func TestALimiterOfAnotherPackage(t *testing.T) {
	for name, join := range map[string]func(limiter.Limiter) limiter.TimedLimiter{
		"joint": func(l limiter.Limiter) limiter.TimedLimiter {
			return limiter.NewJoint("", l, newBucket(limiter.Per(1, time.Hour), 9))
		},
		"named": func(l limiter.Limiter) limiter.TimedLimiter {
			return limiter.NewJoint("n", l)
		},
	} {
		inner := &minimalLimiter{left: 5}
		l := join(inner)
		require.True(t, l.TakeAt(start, 3).OK, name)
		require.True(t, l.Take(0).OK, name)
		require.False(t, l.TakeAt(start, 3).OK, name)
		require.Equal(t, 2, inner.left, name)
		limiter.Refund(l, 1)
		require.Equal(t, 3, inner.left, name)
		require.False(t, l.Take(math.MinInt).OK, name)
		require.Equal(t, 3, inner.left, name)
	}
}
