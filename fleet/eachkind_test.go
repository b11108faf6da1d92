package fleet_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/fleet/internal/redistest"
	"github.com/weir-go/weir/fleet/rediscell"
	"github.com/weir-go/weir/limiter"
)

func TestTakeOfZeroStoresNothing(t *testing.T) {
	l, direct := connect(t), newClient(t, sharedServer())
	for name, b := range ofEachKind(l, "peek", time.Minute) {
		r, err := b.Take(t.Context(), "user", 0)
		require.NoError(t, err, name)
		require.Equal(t, allowedResult(10, 10, 0), r.Result, name)
		require.Zero(t, direct.Exists(t.Context(), b.StateKeys("user")...).Val(), name)
		require.NoError(t, b.Refund(t.Context(), time.Now(), "user", 5), name)
		require.Zero(t, direct.Exists(t.Context(), b.StateKeys("user")...).Val(), name)
	}
}

func TestPeeksAndRefusalsWriteNothing(t *testing.T) {
	s := redistest.Start(t)
	l := connectTo(t, newClient(t, s), fleet.LinkConfig{Timeout: longTimeout})
	writes := func() int {
		calls := s.Calls()
		return calls["set"] + calls["del"] + calls["zadd"] + calls["zrem"] + calls["zremrangebyrank"] + calls["pexpire"]
	}
	for name, b := range ofEachKind(l, "quiet", time.Hour) {
		_, err := b.Take(t.Context(), "user", 6)
		require.NoError(t, err)
		before := writes()
		for _, n := range []int{0, 5, 11, -1} {
			_, err = b.Take(t.Context(), "user", n)
			require.NoError(t, err)
		}
		require.Equal(t, before, writes(), name)
	}
}

// Comments of tests name the numbered scenarios of the project for limiters, such as L53.

// reserver has the methods that limiter.Remote describes.
type reserver interface {
	Reserve(ctx context.Context, n int) (limiter.Result, func(context.Context, int) error, error)
	WaitReserve(ctx context.Context, n int) (func(context.Context, int) error, error)
}

// anyLimiter has methods of a Limiter.
type anyLimiter interface {
	scriptLimiter
	Take(ctx context.Context, key string, n int) (fleet.Result, error)
	Refund(ctx context.Context, taken time.Time, key string, n int) error
	Reset(ctx context.Context, key string) error
	Wait(ctx context.Context, key string, n int) error
	Get(key string) limiter.Remote
}

// ofEachKind returns limiters of 10 per span, one of each kind.
func ofEachKind(l *fleet.Link, name string, span time.Duration) map[string]anyLimiter {
	bucket := fleet.TokenBucket{Rate: limiter.Per(10, span), Burst: 10}
	fixed, log := fleet.FixedWindow{Limit: 10, Window: span}, fleet.SlidingLog{Limit: 10, Window: span}
	return map[string]anyLimiter{
		"bucket":   newLimiter(l, name+"-bucket", bucket, errorOnOutage),
		"fixed":    newLimiter(l, name+"-fixed", fixed, errorOnOutage),
		"sliding":  newLimiter(l, name+"-sliding", fleet.SlidingWindow{Limit: 10, Window: span}, errorOnOutage),
		"log":      newLimiter(l, name+"-log", log, errorOnOutage),
		"throttle": newLimiter(l, name+"-throttle", rediscell.Limit(9, int(10*time.Hour/span), time.Hour), errorOnOutage),
		"quota":    newLimiter(l, name+"-quota", dailyQuota(10), errorOnOutage),
		"all":      newLimiters(l, name+"-all", errorOnOutage, bucket, fixed, log),
	}
}

func TestInvalidNumbersAreRefusedAndChangeNothing(t *testing.T) {
	for name, b := range ofEachKind(connect(t), "nonsense", time.Hour) {
		before, err := b.Take(t.Context(), "user", 4)
		require.NoError(t, err)
		for _, n := range []int{11, math.MaxInt32, math.MaxInt, -1, math.MinInt} {
			r, err := b.Take(t.Context(), "user", n)
			require.NoError(t, err)
			require.False(t, r.OK, name)
			require.Equal(t, limiter.Never, r.RetryAfter, "%s: Take(%d)", name, n)
			require.NoError(t, b.Refund(t.Context(), time.Now(), "user", min(n, 0)))
		}
		after, err := b.Take(t.Context(), "user", 0)
		require.NoError(t, err)
		require.Equal(t, before.Remaining, after.Remaining, name)
		require.NoError(t, b.Refund(t.Context(), time.Now(), "user", math.MaxInt))
		after, err = b.Take(t.Context(), "user", 0)
		require.NoError(t, err)
		require.Equal(t, 10, after.Remaining, name)
	}
}

// Scenario L56.
// Every key has a time to live, however small the limit, and none lives a second longer than
// necessary.
func TestEveryKeyExpires(t *testing.T) {
	s := redistest.Start(t)
	l, direct := connectTo(t, newClient(t, s), fleet.LinkConfig{Timeout: longTimeout}), newClient(t, s)
	spans := []time.Duration{ms, 2 * ms, 100 * ms, time.Second, time.Hour}
	for _, span := range spans {
		for name, b := range ofEachKind(l, "ttl "+span.String(), span) {
			for _, n := range []int{1, 5, 4, 1} {
				r, err := b.Take(t.Context(), "user", n)
				require.NoError(t, err)
				for _, key := range direct.Keys(t.Context(), "*").Val() {
					left := direct.PTTL(t.Context(), key).Val()
					require.NotEqual(t, time.Duration(-1), left, "%s of %s has no time to live: %s", name, span, key)
				}
				for _, key := range b.StateKeys("user") {
					left := direct.PTTL(t.Context(), key).Val()
					require.LessOrEqual(t, left, max(r.ResetAfter, span)+span/10+time.Second, "%s of %s", name, span)
				}
				require.NoError(t, b.Refund(t.Context(), time.Now(), "user", 1))
			}
		}
	}
	short := newLimiter(l, "short", fleet.TokenBucket{Rate: limiter.PerSecond(1_000_000), Burst: 1}, errorOnOutage)
	for range 20 {
		r, err := short.Take(t.Context(), "user", 1)
		require.NoError(t, err)
		require.Equal(t, 1, r.Limit)
	}
}

// An evicted key behaves as an unused one.
func TestEvictedKeyIsAsUnused(t *testing.T) {
	l, direct := connect(t), newClient(t, sharedServer())
	for name, b := range ofEachKind(l, "evicted", time.Hour) {
		for range 2 {
			r, err := b.Take(t.Context(), "user", 10)
			require.NoError(t, err)
			require.True(t, r.OK, name)
			require.NoError(t, direct.Del(t.Context(), b.StateKeys("user")...).Err())
		}
	}
}

// Scenario L57. Ten per second, a hundred per minute and a thousand per hour, in one round trip.
func TestSeveralLimitsInOneRoundTrip(t *testing.T) {
	s := redistest.Start(t)
	all := newLimiters(connectTo(t, newClient(t, s), fleet.LinkConfig{Timeout: longTimeout}), "api", fleet.Config{OnOutage: fleet.FailError, MaxDenied: limiter.Off},
		fleet.SlidingLog{Limit: 10, Window: time.Second}, fleet.SlidingWindow{Limit: 100, Window: time.Minute}, fleet.FixedWindow{Limit: 1000, Window: time.Hour})
	calls := func() int { c := s.Calls(); return c["evalsha"] + c["eval"] }
	_, err := all.Take(t.Context(), "user", 0)
	require.NoError(t, err)
	before := calls()
	at := testStart.Add(time.Second)
	for range 10 {
		r, err := all.TakeAt(t.Context(), at, "user", 1)
		require.NoError(t, err)
		require.True(t, r.OK)
	}
	r, err := all.TakeAt(t.Context(), at, "user", 1)
	require.NoError(t, err)
	require.Equal(t, before+11, calls())
	require.Equal(t, refusedResult(10, 0, time.Second, time.Hour-time.Second), r.Result)
	each, err := all.EachAt(t.Context(), at, "user", 0)
	require.NoError(t, err)
	require.Equal(t, []int{0, 90, 990}, []int{each[0].Remaining, each[1].Remaining, each[2].Remaining}, "a refusal takes nothing")
	each, err = all.EachAt(t.Context(), at, "user", 1)
	require.NoError(t, err)
	require.Equal(t, []bool{false, true, true}, []bool{each[0].OK, each[1].OK, each[2].OK})
}

func TestEachLimitSaysWhetherItRefuses(t *testing.T) {
	_, l := unavailableLink(t)
	b := newLimiters(l, "away", fleet.Config{OnOutage: fleet.FailClosed}, fleet.FixedWindow{Limit: 1, Window: time.Hour}, fleet.FixedWindow{Limit: 2, Window: time.Hour})
	each, err := b.TakeEach(t.Context(), "user", 1)
	require.NoError(t, err)
	require.Equal(t, []fleet.Result{
		{Result: limiter.Result{Limit: 1, RetryAfter: awayTimeout}, From: fleet.FromOutage}, {Result: limiter.Result{Limit: 2, RetryAfter: awayTimeout}, From: fleet.FromOutage},
	}, each)

	b = newLimiters(connect(t), "each", errorOnOutage, fleet.FixedWindow{Limit: 1, Window: time.Hour}, fleet.FixedWindow{Limit: 2, Window: time.Hour})
	for _, want := range [][]bool{{true, true}, {false, true}} {
		each, err = b.TakeEach(t.Context(), "user", 1)
		require.NoError(t, err)
		require.Equal(t, want, []bool{each[0].OK, each[1].OK})
	}
}

func TestAKeyIsARemoteLimit(t *testing.T) {
	l := connect(t)
	for name, b := range ofEachKind(l, "keyed", time.Hour) {
		key := b.Get("user").(interface {
			limiter.Remote
			limiter.WaitLimiter
			reserver
		})
		r, back, err := key.Reserve(t.Context(), 10)
		require.NoError(t, err, name)
		require.Equal(t, [2]any{true, 10}, [2]any{r.OK, r.Limit}, name)
		r, err = key.Take(t.Context(), 10)
		require.NoError(t, err, name)
		require.Equal(t, [2]any{false, 10}, [2]any{r.OK, r.Limit}, name)
		require.NoError(t, back(t.Context(), 3), name)
		require.NoError(t, key.Wait(t.Context(), 2), name)
		back, err = key.WaitReserve(t.Context(), 1)
		require.NoError(t, err, name)
		require.NoError(t, back(t.Context(), 2), name)
		require.NoError(t, key.Wait(t.Context(), 1), name)
		require.ErrorIs(t, key.Wait(t.Context(), 11), limiter.ErrLimited, name)
	}
}

// An error of Redis is not a refusal, and does not count for the breaker of a gate.
func TestGateDoesNotCountErrorsOfRedis(t *testing.T) {
	_, unavailable := unavailableLink(t)
	b := newBucket(unavailable, errorOnOutage)
	guard := breaker.New("guard", breaker.Config{ConsecutiveFailures: 1})
	gate := weir.Join("gate", weir.Parts{Breaker: guard, Remote: b.Get("user"), MaxWait: time.Second})
	for range 8 { // the breaker before Redis opens at 5
		err := gate.Run(t.Context(), func(context.Context) error { t.Error("called"); return nil })
		require.ErrorIs(t, err, fleet.ErrUnavailable)
		require.NotErrorIs(t, err, weir.ErrRefused)
	}
	require.Equal(t, breaker.Closed, guard.State())
	require.Zero(t, guard.Totals().Failures)
}

// Scenario L54.
func TestClocksThatDifferChangeNothing(t *testing.T) {
	for name, here := range ofEachKind(connect(t), "skewed", time.Hour) {
		there := ofEachKind(connect(t), "skewed", time.Hour)[name]
		allowed := 0
		for range 100 {
			for _, node := range []anyLimiter{here, there} { // no node's clock is sent
				r, err := node.Take(t.Context(), "user", 1)
				require.NoError(t, err)
				if r.OK {
					allowed++
				}
			}
		}
		require.Equal(t, 10, allowed, name)
	}
}
