package fleet_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/fleet/internal/redistest"
	"github.com/weir-go/weir/fleet/rediscell"
	"github.com/weir-go/weir/limiter"
)

// tenPerSecond lists limits of every kind, each of 10 tokens per second.
var tenPerSecond = map[string]fleet.Limit{
	"bucket":          fleet.TokenBucket{Rate: limiter.PerSecond(10), Burst: 10},
	"bucket of parts": fleet.TokenBucket{Rate: limiter.Per(10, time.Second+1), Burst: 10},
	"fixed":           fleet.FixedWindow{Limit: 10, Window: time.Second},
	"sliding":         fleet.SlidingWindow{Limit: 10, Window: time.Second},
	"log":             fleet.SlidingLog{Limit: 10, Window: time.Second},
	"cell":            rediscell.Limit(9, 10, time.Second),
	"quota":           dailyQuota(10), // per day
}

// mutate changes a value at random.
func mutate(random *rand.Rand, value string) string {
	odd := []string{
		"0", "-1", "9999999999999999", "99999999999999999999999999999", "9007199254740993", "1e300", "nan", "inf", " ", ":", "\x00", "f", "w", "n", "q",
		"18446744073709551616", "9223372036854775807", "{", "\n", "0x10", "1.5", strings.Repeat("7", 300), strings.Repeat(" 1:1", 10_000),
	}
	other := odd[random.IntN(len(odd))]
	fields := strings.FieldsFunc(value, func(r rune) bool { return r == ' ' || r == ':' })
	at := random.IntN(len(value))
	switch random.IntN(4) {
	case 0:
		return strings.Replace(value, fields[random.IntN(len(fields))], other, 1)
	case 1:
		return value[:at] + other + value[at:]
	case 2:
		return value[:at]
	}
	return value[:at] + string(rune(random.IntN(256))) + value[at+1:]
}

// corruptKey replaces the value of a key by a mutant.
func corruptKey(t *testing.T, direct *redis.Client, random *rand.Rand, key string) {
	t.Helper()
	if direct.Type(t.Context(), key).Val() != "zset" {
		held := direct.Get(t.Context(), key).Val()
		if held == "" { // it has expired: a slow machine
			return
		}
		require.NoError(t, direct.Set(t.Context(), key, mutate(random, held), time.Hour).Err())
		return
	}
	members := direct.ZRangeWithScores(t.Context(), key, 0, -1).Val()
	require.NoError(t, direct.Del(t.Context(), key).Err())
	for _, m := range members {
		if random.IntN(2) == 0 {
			m.Member = mutate(random, m.Member.(string))
		}
		if random.IntN(6) == 0 {
			m.Score = []float64{0, -5, 1e300, 1e18, 5, 0.5}[random.IntN(6)]
		}
		require.NoError(t, direct.ZAdd(t.Context(), key, m).Err())
	}
}

// Whatever value another program has written, the result is an error or is in range, and the server
// keeps running.
func TestCorruptValuesGiveResultsInRange(t *testing.T) {
	t.Parallel()
	const rounds = 600
	l, direct := connect(t), newClient(t, sharedServer())
	for name, limit := range tenPerSecond {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newLimiter(l, "corrupt "+name, limit, fleet.Config{OnOutage: fleet.FailError, MaxDenied: limiter.Off})
			random := rand.New(rand.NewPCG(7, 9))
			foreign := 0
			for range rounds {
				key := newKey()
				for range 3 {
					_, err := b.Take(t.Context(), key, 1+random.IntN(3))
					require.NoError(t, err)
				}
				held := b.StateKeys(key)[0]
				corruptKey(t, direct, random, held)
				value := ""
				for _, n := range []int{0, 1, 10} {
					value = direct.Dump(t.Context(), held).Val()
					r, err := b.Take(t.Context(), key, n)
					if errors.Is(err, fleet.ErrForeign) {
						foreign++
						require.Equal(t, value, direct.Dump(t.Context(), held).Val(), "the value is unchanged")
						continue
					}
					require.NoError(t, err, "%q", value)
					require.Equal(t, 10, r.Limit, "%q", value)
					require.True(t, r.Remaining >= 0 && r.Remaining <= 10, "%+v for %q", r, value)
					require.True(t, r.RetryAfter >= 0 && r.ResetAfter >= 0, "%+v for %q", r, value)
					if name != "cell" && name != "quota" && !strings.HasPrefix(name, "bucket") {
						require.LessOrEqual(t, max(r.RetryAfter, r.ResetAfter), 3*time.Second, "%q", value)
					}
				}
				if err := b.Refund(t.Context(), time.Now(), key, 1+random.IntN(3)); err != nil {
					require.ErrorIs(t, err, fleet.ErrForeign, "%q", value)
				}
				_, err := direct.Del(t.Context(), held).Result()
				require.NoError(t, err)
			}
			require.Greater(t, foreign, rounds/4, "the test has shown too little")
		})
	}
}

// A fraction of more than one token once made a script loop forever. Redis could not kill the
// script, because it had already written.
func TestNoValueHangsTheServer(t *testing.T) {
	s := redistest.Start(t)
	direct := newClient(t, s)
	l := connectTo(t, newClient(t, s), fleet.LinkConfig{Timeout: longTimeout})
	b := newLimiter(l, "hang", fleet.TokenBucket{Rate: limiter.PerSecond(3), Burst: 10}, errorOnOutage)
	now := strconv.FormatInt(time.Now().Add(time.Second).UnixMicro(), 10)
	for i, value := range []string{
		now + " 99999999999999999999999999999 333333 1 3 10", now + " 9999999999999999 333333 1 3 10", now + " 3 333333 1 3 10",
		now + " 0 333333 1 3 9999999999999999", now + " 0 0 0 3 10", now + " 0 333333 3 3 10", now + " 0 333333 1 0 10", now + " 0 333333 1 3",
	} {
		key := strconv.Itoa(i)
		require.NoError(t, direct.Set(t.Context(), b.StateKeys(key)[0], value, time.Minute).Err())
		_, err := b.Take(t.Context(), key, 1)
		require.ErrorIs(t, err, fleet.ErrForeign, value)
		soon, cancel := context.WithTimeout(t.Context(), longTimeout)
		err = direct.Ping(soon).Err()
		cancel()
		require.NoError(t, err, value)
	}
}

func TestForeignRateReturnsErrForeign(t *testing.T) {
	b := newLimiter(connect(t), "rates", fleet.SlidingLog{Limit: 10, Window: time.Second}, errorOnOutage)
	direct := newClient(t, sharedServer())
	for _, value := range []string{"", "x", "l", "l0 1000", "l1 0", "l2147483648 1000", "l10 999999999999999", "l10 1000 ", "l" + strings.Repeat("1", 300) + " 5"} {
		key := newKey()
		require.NoError(t, direct.Set(t.Context(), b.StateKeys(key)[0]+":rate", value, time.Minute).Err())
		_, err := b.Take(t.Context(), key, 1)
		require.ErrorIs(t, err, fleet.ErrForeign, "%q", value)
		require.ErrorIs(t, b.Refund(t.Context(), time.Now(), key, 1), fleet.ErrForeign, "%q", value)
	}
}
