package friend_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/internal/friend"
	"github.com/weir-go/weir/internal/waiting"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/throttle"
	"github.com/weir-go/weir/window"
)

type watcher func(waiting.Cause)

func (w *watcher) Interrupt(c waiting.Cause) { (*w)(c) }

func TestFunctionsOfABreaker(t *testing.T) {
	hooks := breaker.Inside(friend.Key{})
	b := breaker.New("b", breaker.Config{})
	var p breaker.Permit
	require.NoError(t, hooks.Admit(b, &p))
	o, expired, at, classify := hooks.Judge(t.Context(), &p, context.DeadlineExceeded)
	require.Nil(t, classify)
	require.Equal(t, breaker.Failure, o)
	require.False(t, expired)
	require.True(t, hooks.Record(t.Context(), &p, context.DeadlineExceeded, o, at, true))
	require.False(t, p.Record(t.Context(), nil, breaker.Success), "the permit is used up")
	require.Equal(t, int64(1), b.Totals().Failures)
	require.Nil(t, hooks.Gate(b), "b is not in a group")

	b.Force(breaker.ForcedOpen, "")
	p = breaker.Permit{}
	require.False(t, hooks.AdmitClosedAt(b, time.Second, &p))
	require.ErrorIs(t, hooks.AdmitAt(b, time.Now(), &p), breaker.ErrOpen)
	require.ErrorIs(t, hooks.CheckAt(b, time.Now()), breaker.ErrOpen)
	require.ErrorIs(t, hooks.Refuse(b, "a reason"), breaker.ErrOpen)
	require.Equal(t, int64(3), b.Totals().Refused, "AdmitClosedAt refuses nothing")
	var told []waiting.Cause
	w := watcher(func(c waiting.Cause) { told = append(told, c) })
	hooks.Watch(b, &w)
	hooks.Unwatch(b, &w)
	require.Equal(t, []waiting.Cause{waiting.Opened}, told, "b is open")

	throttles := throttle.Inside(friend.Key{})
	th := throttle.New("th", throttle.Config{})
	throttles.Record(th, window.Success)
	require.Equal(t, "th", throttles.Name(th))
	require.Equal(t, int64(1), th.Totals().Successes)

	t0 := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	b = hooks.New("b", breaker.Config{}, t0)
	hooks.OpenForAt(b, t0, time.Minute)
	require.Equal(t, breaker.Open, hooks.StateAt(b, t0.Add(time.Minute-1)))
	require.Equal(t, breaker.HalfOpen, hooks.StateAt(b, t0.Add(time.Minute)))
	hooks.ResetAt(b, t0)
	require.Equal(t, breaker.Closed, hooks.StateAt(b, t0))
	hooks.ForceAt(b, t0, breaker.Disabled)
	require.Equal(t, breaker.Disabled, hooks.StateAt(b, t0))
	hooks.ReleaseAt(b, t0)
	require.Equal(t, breaker.Closed, hooks.StateAt(b, t0))
}

// A breaker ignores a deadline that is shorter than the usual time of a call. The gate learns that
// it has passed.
func TestAGateLearnsOfADeadlineThatTheBreakerIgnores(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hooks := breaker.Inside(friend.Key{})
		b := breaker.New("b", breaker.Config{})
		for range 100 {
			_ = b.Run(t.Context(), func(context.Context) error { time.Sleep(50 * time.Millisecond); return nil })
		}
		for _, late := range []bool{true, false} {
			var p breaker.Permit
			require.NoError(t, hooks.Admit(b, &p))
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			if late {
				<-ctx.Done()
			}
			o, expired, _, _ := hooks.Judge(ctx, &p, context.DeadlineExceeded)
			cancel()
			require.Equal(t, late, expired)
			require.Equal(t, late, o == breaker.Ignored)
			o, expired = hooks.JudgeAs(ctx, &p, context.DeadlineExceeded, time.Second, breaker.Overloaded)
			require.Equal(t, breaker.Overloaded, o, "the service has answered")
			require.False(t, expired && !late)
		}
	})
}

var t0 = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

var limiters = limiter.Inside(friend.Key{})

func newBucket() *limiter.TokenBucket {
	return limiters.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Per(10, time.Second), Burst: 5}, t0)
}

func TestFunctionsOfATokenBucket(t *testing.T) {
	b := newBucket()
	require.Equal(t, 5.0, limiters.TokensAt(b, t0))
	require.Equal(t, 500*time.Millisecond, limiters.Period(b), "the time that fills the bucket")
	require.True(t, limiters.TakeFast(b, 0, 2))
	require.Equal(t, 3.0, limiters.TokensAt(b, t0))

	r := limiters.ReserveAt(b, t0, 4, time.Second)
	require.True(t, r.OK)
	require.True(t, limiters.CancelAt(r, t0))
	require.Equal(t, 3.0, limiters.TokensAt(b, t0))

	require.NoError(t, limiters.ChangeAt(b, t0, limiter.Per(100, time.Second), 50))
	require.Equal(t, 100.0, limiters.PerSecond(limiter.Per(100, time.Second)))
	require.Equal(t, 13.0, limiters.TokensAt(b, t0.Add(100*time.Millisecond)), "at the new rate")
}

// foreignLimiter is a limiter from outside package limiter.
type foreignLimiter struct{ refund []any }

func (*foreignLimiter) Take(int) limiter.Result { return limiter.Result{OK: true} }
func (l *foreignLimiter) Refund(taken time.Time, n int) {
	l.refund = []any{taken, n}
}

func TestReserveOfAnyLimiter(t *testing.T) {
	for _, waits := range []bool{false, true} {
		b := newBucket()
		before := limiters.TokensAt(b, t0)
		r := limiters.Reserve(b, t0, 1, waits)
		require.True(t, r.OK)
		require.Equal(t, before-1, limiters.TokensAt(b, t0))

		foreign := &foreignLimiter{}
		r = limiters.Reserve(foreign, t0, 2, waits)
		require.True(t, r.OK)
		r.Refund(1)
		require.Equal(t, []any{t0, 1}, foreign.refund)
	}
}

// clonedKey is a key that counts its copies.
type clonedKey string

var copies int

func (k clonedKey) Clone(friend.Key) clonedKey {
	copies++
	return clonedKey(strings.Clone(string(k)))
}

func TestFunctionsOfAGroup(t *testing.T) {
	g := limiter.NewGroup(limiter.GroupConfig[clonedKey]{Rate: limiter.Per(10, time.Second), Burst: 1})
	bare := g.Inside(friend.Key{})
	copies = 0
	require.True(t, bare.LookAt(t0, "a", 1).OK)
	require.True(t, bare.ChargeAt(t0, "a", 1))
	require.False(t, bare.LookAt(t0, "a", 1).OK)
	require.Equal(t, 100*time.Millisecond, bare.LookAt(t0, "a", 1).RetryAfter)
	require.True(t, bare.ChargeAt(t0, "a", 2))
	require.Equal(t, 300*time.Millisecond, bare.LookAt(t0, "a", 1).RetryAfter)
	require.Equal(t, 1, copies, "a new key is copied once")
	evictions, noRoom, limit, period := bare.Figures()
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
	q := limiters.NewQueue(s, 1)
	require.NoError(t, q.Wait(t.Context(), 1))
	require.Zero(t, s.free)
	require.False(t, q.HasWaiters())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Error(t, q.Wait(ctx, 1))
	require.False(t, q.HasWaiters())
	q.WakeFirst()
}
