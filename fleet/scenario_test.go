package fleet_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/fleet/internal/redistest"
	"github.com/weir-go/weir/fleet/rediscell"
	"github.com/weir-go/weir/fleet/redisson"
	"github.com/weir-go/weir/limiter"
)

func TestTakeOfZeroStoresNothing(t *testing.T) {
	l, direct := connect(t), client(t, server())
	for name, b := range ofEachKind(l, "peek", time.Minute) {
		r, err := b.Take(t.Context(), "user", 0)
		require.NoError(t, err, name)
		require.Equal(t, yes(10, 10, 0), r.Result, name)
		require.Zero(t, direct.Exists(t.Context(), b.StateKeys("user")...).Val(), name)
		require.NoError(t, b.Refund(t.Context(), "user", 5), name)
		require.Zero(t, direct.Exists(t.Context(), b.StateKeys("user")...).Val(), name)
	}
}

func TestPeeksAndRefusalsWriteNothing(t *testing.T) {
	s := redistest.Start(t)
	l := connectTo(t, client(t, s), fleet.LinkConfig{Timeout: patient})
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

// anyLimiter has methods of a Limiter.
type anyLimiter interface {
	scripted
	Take(ctx context.Context, key string, n int) (fleet.Result, error)
	Refund(ctx context.Context, key string, n int) error
	Reset(ctx context.Context, key string) error
	Wait(ctx context.Context, key string, n int) error
	Get(key string) limiter.Remote
}

// ofEachKind returns limiters of 10 per span, one of each kind.
func ofEachKind(l *fleet.Link, name string, span time.Duration) map[string]anyLimiter {
	bucket := fleet.TokenBucket{Rate: limiter.Per(10, span), Burst: 10}
	fixed, log := fleet.FixedWindow{Limit: 10, Window: span}, fleet.SlidingLog{Limit: 10, Window: span}
	return map[string]anyLimiter{
		"bucket":   newLimiter(l, name+"-bucket", bucket, orError),
		"fixed":    newLimiter(l, name+"-fixed", fixed, orError),
		"sliding":  newLimiter(l, name+"-sliding", fleet.SlidingWindow{Limit: 10, Window: span}, orError),
		"log":      newLimiter(l, name+"-log", log, orError),
		"throttle": newLimiter(l, name+"-throttle", rediscell.Limit(9, int(10*time.Hour/span), time.Hour), orError),
		"all":      newLimiters(l, name+"-all", orError, bucket, fixed, log),
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
			require.NoError(t, b.Refund(t.Context(), "user", min(n, 0)))
		}
		after, err := b.Take(t.Context(), "user", 0)
		require.NoError(t, err)
		require.Equal(t, before.Remaining, after.Remaining, name)
		require.NoError(t, b.Refund(t.Context(), "user", math.MaxInt))
		after, err = b.Take(t.Context(), "user", 0)
		require.NoError(t, err)
		require.Equal(t, 10, after.Remaining, name)
	}
}

// Every key has a time to live, however small the limit, and none lives a second longer than
// necessary.
func TestEveryKeyExpires(t *testing.T) {
	s := redistest.Start(t)
	l, direct := connectTo(t, client(t, s), fleet.LinkConfig{Timeout: patient}), client(t, s)
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
				require.NoError(t, b.Refund(t.Context(), "user", 1))
			}
		}
	}
	short := newLimiter(l, "short", fleet.TokenBucket{Rate: limiter.PerSecond(1_000_000), Burst: 1}, orError)
	for range 20 {
		r, err := short.Take(t.Context(), "user", 1)
		require.NoError(t, err)
		require.Equal(t, 1, r.Limit)
	}
}

// An evicted key behaves as an unused one.
func TestEvictedKeyIsAsUnused(t *testing.T) {
	l, direct := connect(t), client(t, server())
	for name, b := range ofEachKind(l, "evicted", time.Hour) {
		for range 2 {
			r, err := b.Take(t.Context(), "user", 10)
			require.NoError(t, err)
			require.True(t, r.OK, name)
			require.NoError(t, direct.Del(t.Context(), b.StateKeys("user")...).Err())
		}
	}
}

// Ten per second, a hundred per minute and a thousand per hour, in one round trip.
func TestSeveralLimitsInOneRoundTrip(t *testing.T) {
	s := redistest.Start(t)
	all := newLimiters(connectTo(t, client(t, s), fleet.LinkConfig{Timeout: patient}), "api", fleet.Config{OnOutage: fleet.FailError, MaxDenied: fleet.Off},
		fleet.SlidingLog{Limit: 10, Window: time.Second}, fleet.SlidingWindow{Limit: 100, Window: time.Minute}, fleet.FixedWindow{Limit: 1000, Window: time.Hour})
	calls := func() int { c := s.Calls(); return c["evalsha"] + c["eval"] }
	_, err := all.Take(t.Context(), "user", 0)
	require.NoError(t, err)
	before := calls()
	at := begin.Add(time.Second)
	for range 10 {
		r, err := all.TakeAt(t.Context(), at, "user", 1)
		require.NoError(t, err)
		require.True(t, r.OK)
	}
	r, err := all.TakeAt(t.Context(), at, "user", 1)
	require.NoError(t, err)
	require.Equal(t, before+11, calls())
	require.Equal(t, no(10, 0, time.Second, time.Hour-time.Second), r.Result)
	each, err := all.EachAt(t.Context(), at, "user", 0)
	require.NoError(t, err)
	require.Equal(t, []int{0, 90, 990}, []int{each[0].Remaining, each[1].Remaining, each[2].Remaining}, "a refusal takes nothing")
	each, err = all.EachAt(t.Context(), at, "user", 1)
	require.NoError(t, err)
	require.Equal(t, []bool{false, true, true}, []bool{each[0].OK, each[1].OK, each[2].OK})
}

func TestTakeEachSaysWhichLimitRefused(t *testing.T) {
	_, l := awayLink(t)
	b := newLimiters(l, "away", fleet.Config{OnOutage: fleet.FailClosed}, fleet.FixedWindow{Limit: 1, Window: time.Hour}, fleet.FixedWindow{Limit: 2, Window: time.Hour})
	each, err := b.TakeEach(t.Context(), "user", 1)
	require.NoError(t, err)
	require.Equal(t, []fleet.Result{
		{Result: limiter.Result{Limit: 1, RetryAfter: awayTimeout}, From: fleet.FromOutage}, {Result: limiter.Result{Limit: 2, RetryAfter: awayTimeout}, From: fleet.FromOutage},
	}, each)

	b = newLimiters(connect(t), "each", orError, fleet.FixedWindow{Limit: 1, Window: time.Hour}, fleet.FixedWindow{Limit: 2, Window: time.Hour})
	for _, want := range [][]bool{{true, true}, {false, true}} {
		each, err = b.TakeEach(t.Context(), "user", 1)
		require.NoError(t, err)
		require.Equal(t, want, []bool{each[0].OK, each[1].OK})
	}
	each, err = b.TakeEach(t.Context(), "user", -1)
	require.NoError(t, err)
	require.Equal(t, limiter.Never, each[1].RetryAfter)
}

// logSteps uses the log of a key at given times.
type logSteps struct {
	*testing.T
	*fleet.Limiter
}

func (l logSteps) take(at time.Duration, n int) bool {
	r, err := l.TakeAt(l.Context(), begin.Add(at), "user", n)
	require.NoError(l, err)
	return r.OK
}

func (l logSteps) left(at time.Duration) int {
	r, err := l.TakeAt(l.Context(), begin.Add(at), "user", 0)
	require.NoError(l, err)
	return r.Remaining
}

func (l logSteps) refund(at time.Duration, n int) {
	require.NoError(l, l.GiveBackAt(l.Context(), begin.Add(at), "user", n))
}

func (l logSteps) set(limit int, span time.Duration) {
	require.NoError(l, redisson.SetRate(l.Context(), l.Limiter, "user", limit, span))
}

// newLog returns a log with a name of its own.
func newLog(t *testing.T, limit int, span time.Duration) logSteps {
	return logSteps{t, newLimiter(connect(t), newKey(), fleet.SlidingLog{Limit: limit, Window: span}, orError)}
}

func TestSlidingLogAsRedissonDocuments(t *testing.T) {
	l := newLog(t, 2, 5*time.Second)
	require.True(t, l.take(0, 1))
	require.True(t, l.take(4*time.Second, 1))
	require.True(t, l.take(5050*ms, 1))
	require.False(t, l.take(5050*ms, 1))

	l = newLog(t, 10, time.Second)
	for round := range time.Duration(3) {
		for i := range 20 {
			require.Equal(t, i < 10, l.take(round*1050*ms, 1))
		}
	}
}

func TestAChangeOfTheRateKeepsWhatWasTaken(t *testing.T) {
	for _, c := range []struct{ taken, limit, left int }{{3, 20, 17}, {3, 5, 2}, {8, 5, 0}} {
		l := newLog(t, 10, 5*time.Second)
		require.True(t, l.take(0, c.taken))
		l.set(c.limit, 5*time.Second)
		require.Equal(t, c.left, l.left(0))
	}
	l := newLog(t, 10, 5*time.Second)
	require.True(t, l.take(0, 10))
	require.Zero(t, l.left(1100*ms))
	l.set(10, time.Second)
	require.Equal(t, 10, l.left(1100*ms))
}

// Redisson's trySetRate corresponds to the config: it applies only while no rate is set.
func TestSetRateOverridesTheConfig(t *testing.T) {
	link, name := connect(t), newKey()
	l := newLimiter(link, name, fleet.SlidingLog{Limit: 10, Window: time.Second}, orError)
	require.NoError(t, redisson.SetRate(t.Context(), l, "user", 5, time.Second))
	for _, limit := range []int{10, 7, 1} {
		other := newLimiter(link, name, fleet.SlidingLog{Limit: limit, Window: time.Minute}, orError)
		left, err := other.Take(t.Context(), "user", 0)
		require.NoError(t, err)
		require.Equal(t, 5, left.Remaining)
	}
	require.EqualError(t, redisson.SetRate(t.Context(), newLimiter(link, name, hourly, orError), "user", 5, time.Second),
		`fleet: limiter "`+name+`" cannot set a rate: its only limit must be a SlidingLog`)
	require.EqualError(t, redisson.SetRate(t.Context(), l, "user", 0, time.Second), "fleet: Limit is 0, must lie between 1 and 2147483647")
	left := client(t, server()).PTTL(t.Context(), l.StateKeys("user")[0]+":rate").Val()
	require.InDelta(t, 24, left.Hours(), 0.1, "a rate is kept for a day")
}

func TestARateIsKeptWhileItsKeyIsUsed(t *testing.T) {
	direct := client(t, server())
	l := newLog(t, 10, time.Second)
	_, err := l.Take(t.Context(), "user", 1)
	require.NoError(t, err)
	log := l.StateKeys("user")[0]
	l.set(20, time.Hour)
	require.Greater(t, direct.PTTL(t.Context(), log).Val(), 59*time.Minute, "tokens count for the longer window")
	require.NoError(t, direct.Expire(t.Context(), log+":rate", time.Minute).Err())
	_, err = l.Take(t.Context(), "user", 1)
	require.NoError(t, err)
	require.Greater(t, direct.PTTL(t.Context(), log+":rate").Val(), 23*time.Hour)
}

// A longer window may include deleted entries. Until it no longer does, nothing is allowed.
func TestLongerWindowIncludesDeletedEntries(t *testing.T) {
	l := newLog(t, 10, time.Second)
	require.True(t, l.take(0, 10))
	require.True(t, l.take(time.Second, 1)) // drops the ten
	l.set(10, 10*time.Second)
	require.False(t, l.take(2*time.Second, 1))
	r, err := l.TakeAt(t.Context(), begin.Add(2*time.Second), "user", 1)
	require.NoError(t, err)
	require.Equal(t, no(10, 0, 8*time.Second, 9*time.Second), r.Result)
	require.True(t, l.take(10*time.Second, 9))
}

func TestARefundIsTakenOutOfTheLog(t *testing.T) {
	l := newLog(t, 10, time.Second)
	require.True(t, l.take(0, 5))
	l.refund(0, 5)
	require.True(t, l.take(500*ms, 8))
	require.False(t, l.take(1001*ms, 3))
	require.True(t, l.take(1001*ms, 2))

	l = newLog(t, 10, time.Second)
	require.True(t, l.take(0, 1))
	for range 10 {
		require.True(t, l.take(0, 1))
		l.refund(0, 1)
	}
	require.Equal(t, 9, l.left(0))
	l.refund(0, 100)
	require.Equal(t, 10, l.left(0))
}

func TestClientsWithALimitOfTheirOwn(t *testing.T) {
	l := connect(t)
	var logs []*fleet.Limiter
	for _, client := range []string{"a", "b", "", ""} {
		logs = append(logs, newLimiter(l, "clients", redisson.PerClient(fleet.SlidingLog{Limit: 2, Window: time.Hour}, client), orError))
	}
	for _, log := range logs {
		for i := range 3 {
			r, err := log.Take(t.Context(), "user", 1)
			require.NoError(t, err)
			require.Equal(t, i < 2, r.OK)
		}
	}
	require.NoError(t, redisson.SetRate(t.Context(), logs[0], "user", 5, time.Hour))
	for _, log := range logs {
		left, err := log.Take(t.Context(), "user", 0)
		require.NoError(t, err)
		require.Equal(t, 3, left.Remaining, "the rate applies to all clients")
	}
}

// No window contains more than the limit, in random histories of random windows.
func TestNoWindowHoldsMoreThanTheLimit(t *testing.T) {
	l := connect(t)
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 7))
		limit, span := 1+random.IntN(20), time.Duration(1+random.Int64N(5000))*ms
		for name, b := range map[string]timed{
			"sliding": newLimiter(l, "bound-sliding", fleet.SlidingWindow{Limit: limit, Window: span, Buckets: 1 + random.IntN(30)}, orError),
			"log":     newLimiter(l, "bound-log", fleet.SlidingLog{Limit: limit, Window: span}, orError),
		} {
			key, at := newKey(), begin
			var admitted []logEntry
			for range 60 {
				at = at.Add(time.Duration(random.Int64N(int64(span)/4+1)) / us * us)
				n := 1 + random.IntN(limit)
				r, err := b.TakeAt(t.Context(), at, key, n)
				require.NoError(t, err)
				if r.OK {
					admitted = append(admitted, logEntry{at.UnixMicro(), int64(n)})
				}
				sum := int64(0)
				for _, e := range live(admitted, at.UnixMicro(), span.Microseconds()) {
					sum += e.n
				}
				require.LessOrEqual(t, sum, int64(limit), "%s of %d in %s, seed %d", name, limit, span, seed)
			}
			require.NotEmpty(t, admitted)
		}
	}
}

func TestAKeyIsARemoteLimit(t *testing.T) {
	l := connect(t)
	for name, b := range ofEachKind(l, "keyed", time.Hour) {
		key := b.Get("user").(interface {
			limiter.Remote
			limiter.WaitLimiter
			Refund(ctx context.Context, n int) error
		})
		for _, ok := range []bool{true, false} {
			r, err := key.Take(t.Context(), 10)
			require.NoError(t, err, name)
			require.Equal(t, [2]any{ok, 10}, [2]any{r.OK, r.Limit}, name)
		}
		require.NoError(t, key.Refund(t.Context(), 3), name)
		require.NoError(t, key.Wait(t.Context(), 3), name)
		require.ErrorIs(t, key.WaitAtMost(t.Context(), 11, time.Minute), limiter.ErrLimited, name)
	}
}

// An error of Redis is not a refusal, and does not count for the breaker of a gate.
func TestGateDoesNotCountErrorsOfRedis(t *testing.T) {
	_, away := awayLink(t)
	b := newBucket(away, orError)
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
