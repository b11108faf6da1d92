package fleet_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/fleet/redisson"
)

// logSteps uses the log of a key at given times.
type logSteps struct {
	*testing.T
	*fleet.Limiter
}

func (l logSteps) take(at time.Duration, n int) bool {
	r, err := l.TakeAt(l.Context(), testStart.Add(at), "user", n)
	require.NoError(l, err)
	return r.OK
}

func (l logSteps) left(at time.Duration) int {
	r, err := l.TakeAt(l.Context(), testStart.Add(at), "user", 0)
	require.NoError(l, err)
	return r.Remaining
}

func (l logSteps) refund(at time.Duration, n int) {
	require.NoError(l, l.GiveBackAt(l.Context(), testStart.Add(at), "user", n))
}

func (l logSteps) set(limit int, span time.Duration) {
	require.NoError(l, redisson.SetRate(l.Context(), l.Limiter, "user", limit, span))
}

// newLog returns a log with a name of its own.
func newLog(t *testing.T, limit int, span time.Duration) logSteps {
	return logSteps{t, newLimiter(connect(t), newKey(), fleet.SlidingLog{Limit: limit, Window: span}, errorOnOutage)}
}

// Scenario L63.
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

// Scenario L63.
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

// Scenario L63.
// Redisson's trySetRate corresponds to the config: it applies only while no rate is set.
func TestSetRateOverridesTheConfig(t *testing.T) {
	link, name := connect(t), newKey()
	l := newLimiter(link, name, fleet.SlidingLog{Limit: 10, Window: time.Second}, errorOnOutage)
	require.NoError(t, redisson.SetRate(t.Context(), l, "user", 5, time.Second))
	for _, limit := range []int{10, 7, 1} {
		other := newLimiter(link, name, fleet.SlidingLog{Limit: limit, Window: time.Minute}, errorOnOutage)
		left, err := other.Take(t.Context(), "user", 0)
		require.NoError(t, err)
		require.Equal(t, 5, left.Remaining)
	}
	require.EqualError(t, redisson.SetRate(t.Context(), newLimiter(link, name, hourlyBucket, errorOnOutage), "user", 5, time.Second),
		`fleet: limiter "`+name+`" cannot set a rate: its only limit must be a SlidingLog`)
	require.EqualError(t, redisson.SetRate(t.Context(), l, "user", 0, time.Second), "fleet: Limit is 0, must lie between 1 and 2147483647")
	left := newClient(t, sharedServer()).PTTL(t.Context(), l.StateKeys("user")[0]+":rate").Val()
	require.InDelta(t, 24, left.Hours(), 0.1, "a rate is kept for a day")
}

func TestARateIsKeptWhileItsKeyIsUsed(t *testing.T) {
	direct := newClient(t, sharedServer())
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

// A longer window may include entries that were deleted. As long as it does, nothing is allowed.
func TestLongerWindowIncludesDeletedEntries(t *testing.T) {
	l := newLog(t, 10, time.Second)
	require.True(t, l.take(0, 10))
	require.True(t, l.take(time.Second, 1)) // drops the ten
	l.set(10, 10*time.Second)
	require.False(t, l.take(2*time.Second, 1))
	r, err := l.TakeAt(t.Context(), testStart.Add(2*time.Second), "user", 1)
	require.NoError(t, err)
	require.Equal(t, refusedResult(10, 0, 8*time.Second, 9*time.Second), r.Result)
	require.True(t, l.take(10*time.Second, 9))
}

// Scenario L64.
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
		logs = append(logs, newLimiter(l, "clients", redisson.PerClient(fleet.SlidingLog{Limit: 2, Window: time.Hour}, client), errorOnOutage))
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
		for name, b := range map[string]timedLimiter{
			"sliding": newLimiter(l, "bound-sliding", fleet.SlidingWindow{Limit: limit, Window: span, Buckets: 1 + random.IntN(30)}, errorOnOutage),
			"log":     newLimiter(l, "bound-log", fleet.SlidingLog{Limit: limit, Window: span}, errorOnOutage),
		} {
			key, at := newKey(), testStart
			var allowed []logEntry
			for range 60 {
				at = at.Add(time.Duration(random.Int64N(int64(span)/4+1)) / us * us)
				n := 1 + random.IntN(limit)
				r, err := b.TakeAt(t.Context(), at, key, n)
				require.NoError(t, err)
				if r.OK {
					allowed = append(allowed, logEntry{at.UnixMicro(), int64(n)})
				}
				sum := int64(0)
				for _, e := range liveEntries(allowed, at.UnixMicro(), span.Microseconds()) {
					sum += e.n
				}
				require.LessOrEqual(t, sum, int64(limit), "%s of %d in %s, seed %d", name, limit, span, seed)
			}
			require.NotEmpty(t, allowed)
		}
	}
}
