package bridge_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/bridge"
	"github.com/weir-go/weir/limiter"
)

var t0 = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func newBucket() *limiter.TokenBucket {
	return limiter.NewTokenBucketAt(limiter.TokenBucketConfig{Rate: limiter.Per(10, time.Second), Burst: 5}, t0)
}

func TestFunctionsOfATokenBucket(t *testing.T) {
	b := newBucket()
	require.Equal(t, 5.0, bridge.TokensAt(b, t0))
	require.Equal(t, 500*time.Millisecond, bridge.Describe(b).Period, "the time that fills the bucket")
	takeFast := bridge.TakeFast.(func(*limiter.TokenBucket, time.Duration, int) bool)
	require.True(t, takeFast(b, 0, 2))
	require.Equal(t, 3.0, bridge.TokensAt(b, t0))

	r, ok := bridge.ReserveAt(b, t0, 4, time.Second).(*limiter.Reservation)
	require.True(t, ok)
	require.True(t, r.OK)
	require.True(t, bridge.CancelAt(r, t0))
	require.Equal(t, 3.0, bridge.TokensAt(b, t0))

	require.NoError(t, bridge.ChangeAt(b, t0, limiter.Per(100, time.Second), 50))
	require.Equal(t, 100.0, bridge.PerSecond(limiter.Per(100, time.Second)))
	require.Equal(t, 13.0, bridge.TokensAt(b, t0.Add(100*time.Millisecond)), "at the new rate")
}

// foreignLimiter is a limiter from outside package limiter.
type foreignLimiter struct{ refund []any }

func (*foreignLimiter) Take(int) limiter.Result { return limiter.Result{OK: true} }
func (l *foreignLimiter) Refund(taken time.Time, n int) {
	l.refund = []any{taken, n}
}

func TestReserveOfAnyLimiter(t *testing.T) {
	reserve := bridge.Reserve.(func(limiter.Limiter, time.Time, int, bool) limiter.Reservation)
	for _, waits := range []bool{false, true} {
		b := newBucket()
		before := bridge.TokensAt(b, t0)
		r := reserve(b, t0, 1, waits)
		require.True(t, r.OK)
		require.Equal(t, before-1, bridge.TokensAt(b, t0))

		foreign := &foreignLimiter{}
		r = reserve(foreign, t0, 2, waits)
		require.True(t, r.OK)
		r.Refund(1)
		require.Equal(t, []any{t0, 1}, foreign.refund)
	}
}

func TestFunctionsOfAGroup(t *testing.T) {
	g := limiter.NewGroupAt(limiter.GroupConfig[string]{Rate: limiter.Per(10, time.Second), Burst: 1}, t0)
	copies := 0
	bridge.CopyKeys(g, func(key string) string {
		copies++
		return strings.Clone(key)
	})
	bare := bridge.Uncounted(g).(interface {
		TakeAt(t time.Time, key string, n int) limiter.Result
		LookAt(t time.Time, key string, n int) limiter.Result
	})
	require.True(t, bare.LookAt(t0, "a", 1).OK)
	require.True(t, bare.TakeAt(t0, "a", 1).OK)
	require.False(t, bare.LookAt(t0, "a", 1).OK)
	require.False(t, bare.TakeAt(t0, "a", 1).OK)
	require.Equal(t, 1, copies, "a new key is copied once")
	evictions, noRoom, limit, period := bridge.GroupFigures(g)
	require.Zero(t, evictions)
	require.Zero(t, noRoom)
	require.Equal(t, 1, limit)
	require.Equal(t, 100*time.Millisecond, period)
}

// slotLimiter is a limiter with a fixed number of tokens, which the test gives back.
type slotLimiter struct{ free int }

func (s *slotLimiter) Acquire(n int) (time.Duration, bool) {
	if s.free < n {
		return time.Hour, false
	}
	s.free -= n
	return 0, true
}

func (s *slotLimiter) Predict(ahead int64, n int) (time.Duration, bool) {
	return 0, int64(s.free) >= ahead+int64(n)
}

func TestQueueTakesFromItsSource(t *testing.T) {
	s := &slotLimiter{free: 1}
	q := bridge.NewQueue(s, 1)
	require.NoError(t, q.Wait(t.Context(), 1, time.Hour))
	require.Zero(t, s.free)
	require.False(t, q.HasWaiters())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Error(t, q.Wait(ctx, 1, time.Hour))
	require.False(t, q.HasWaiters())
	q.WakeFirst()
}
