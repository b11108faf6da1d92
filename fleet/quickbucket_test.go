package fleet_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/limiter"
)

func TestQuickScriptMatchesTokenBucketScript(t *testing.T) {
	l := connect(t)
	for _, rate := range []limiter.Rate{limiter.PerSecond(10), limiter.PerSecond(1_000_000), limiter.PerMinute(7.5), limiter.Per(1, time.Hour)} {
		t.Run(rate.String(), func(t *testing.T) {
			b := newLimiter(l, "quick", fleet.TokenBucket{Rate: rate, Burst: 10}, fleet.Config{OnOutage: fleet.FailError})
			require.True(t, b.Quick())
			r := rand.New(rand.NewPCG(1, 2))
			at, quick, slow := time.Now(), newKey(), newKey()
			for step := range 500 {
				at = at.Add(time.Duration(r.IntN(3)) * time.Duration(r.Int64N(int64(5*time.Second)/int64(1+r.IntN(1000)))))
				n := r.IntN(11)
				want, err := b.TakeAt(t.Context(), at, slow, n)
				require.NoError(t, err)
				got, decided, err := b.QuickAt(t.Context(), at, quick, n)
				require.NoError(t, err)
				require.True(t, decided)
				require.Equalf(t, want, got, "step %d: Take(%d)", step, n)
				if r.IntN(10) == 0 {
					n := 1 + r.IntN(5)
					require.NoError(t, b.GiveBackAt(t.Context(), at, slow, n))
					require.NoError(t, b.GiveBackAt(t.Context(), at, quick, n))
				}
			}
		})
	}
}

func TestQuickScriptRejectsUnknownValues(t *testing.T) {
	l := connect(t)
	c := fleet.Config{OnOutage: fleet.FailError}
	now := newLimiter(l, "unknown", fleet.TokenBucket{Rate: limiter.Per(10, time.Hour), Burst: 10}, c)
	require.True(t, now.Quick())
	before := newLimiter(l, "unknown", fleet.TokenBucket{Rate: limiter.Per(7, time.Hour), Burst: 10}, c)
	require.False(t, before.Quick(), "an hour is not a multiple of 7µs")
	key := newKey()
	_, err := before.Take(t.Context(), key, 4)
	require.NoError(t, err)
	r, err := now.Take(t.Context(), key, 4)
	require.NoError(t, err)
	require.True(t, r.OK)
	require.Equal(t, 2, r.Remaining, "the missing tokens stay when the rate changes")

	for _, foreign := range []string{"", "x", "abcdefghijklmnop 0 360000000 0 1"} {
		key := newKey()
		sharedServer().Do("SET", now.StateKeys(key)[0], foreign)
		_, err := now.Take(t.Context(), key, 1)
		require.ErrorIs(t, err, fleet.ErrForeign, "%q", foreign)
	}
}

// A key lives until its bucket is full, and the script of all limits can read what the quick script
// has written.
func TestValuesOfTheQuickScript(t *testing.T) {
	l, c := connect(t), newClient(t, sharedServer())
	for _, every := range []time.Duration{time.Second, time.Hour, 30 * 24 * time.Hour} {
		// the last in ms is more than 32 bits
		b := newLimiter(l, "written", fleet.TokenBucket{Rate: limiter.Per(1, every), Burst: 2}, fleet.Config{OnOutage: fleet.FailError})
		require.True(t, b.Quick())
		for range 10 {
			key := newKey()
			before := time.Now()
			r, err := b.Take(t.Context(), key, 2)
			require.NoError(t, err)
			require.True(t, r.OK)
			require.Equal(t, 2*every, r.ResetAfter)
			life, err := c.PTTL(t.Context(), b.StateKeys(key)[0]).Result()
			require.NoError(t, err)
			require.GreaterOrEqual(t, life, 2*every-time.Since(before))
			require.LessOrEqual(t, life, 2*every+time.Millisecond)
			require.NoError(t, b.Refund(t.Context(), time.Now(), key, 1), "by the script of all limits")
			r, err = b.Take(t.Context(), key, 1)
			require.NoError(t, err)
			require.True(t, r.OK)
			require.LessOrEqual(t, r.ResetAfter, 2*every)
			require.Greater(t, r.ResetAfter, 2*every-time.Since(before)-time.Millisecond)
		}
	}
}

func TestForeignKeyDoesNotAffectItsBatch(t *testing.T) {
	c := newClient(t, sharedServer())
	foreign, mine := newKey(), newKey()
	require.NoError(t, c.RPush(t.Context(), foreign, "x").Err())
	terms := " 0 1000 0 1"
	answer, err := c.Eval(t.Context(), fleet.QuickScript(), []string{foreign, mine}, 1000, 10_000, terms, 2000, 10_000, terms).Int64Slice()
	require.NoError(t, err)
	require.Equal(t, []int64{0, -1, -8000, 0}, answer)
}
