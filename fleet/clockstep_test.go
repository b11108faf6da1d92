package fleet_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/fleet/rediscell"
	"github.com/weir-go/weir/limiter"
)

// Tokens are taken while the clock of Redis is ahead. After the clock is corrected, these tokens
// count for no longer than a bucket takes to fill, or two windows.
func TestAKeyIsFreeSoonAfterTheClockWasAhead(t *testing.T) {
	const span = 300 * ms
	l := connect(t)
	for name, limit := range map[string]fleet.Limit{
		"bucket":          fleet.TokenBucket{Rate: limiter.Per(10, span), Burst: 10},
		"bucket of parts": fleet.TokenBucket{Rate: limiter.Per(10, span+1), Burst: 10},
		"fixed":           fleet.FixedWindow{Limit: 10, Window: span},
		"sliding":         fleet.SlidingWindow{Limit: 10, Window: span},
		"log":             fleet.SlidingLog{Limit: 10, Window: span},
	} {
		for _, ahead := range []time.Duration{5 * span, 5 * time.Minute, 365 * 24 * time.Hour} {
			t.Run(name+" "+ahead.String(), func(t *testing.T) {
				t.Parallel()
				b, key := newLimiter(l, "ahead "+name, limit, errorOnOutage), newKey()
				r, err := b.TakeAt(t.Context(), time.Now().Add(ahead), key, 10)
				require.NoError(t, err)
				require.True(t, r.OK)
				began := time.Now()
				peeked, err := b.Take(t.Context(), key, 0)
				require.NoError(t, err)
				require.LessOrEqual(t, peeked.ResetAfter, 2*span+span/5, "%+v", peeked)
				r, err = b.Take(t.Context(), key, 10)
				require.NoError(t, err)
				require.False(t, r.OK, "tokens count as taken now: %+v", r)
				require.LessOrEqual(t, r.RetryAfter, 2*span+span/5)
				require.NoError(t, b.Wait(t.Context(), key, 10))
				require.Greater(t, time.Since(began), span/2, "the tokens still count")
				waited, allowed := time.Now(), 0
				for r.OK = true; r.OK && allowed < 1000; {
					r, err = b.Take(t.Context(), key, 1)
					require.NoError(t, err)
					allowed++
				}
				require.Less(t, allowed-1, 10*(2+int(time.Since(waited)/span)), "the limit holds again")
			})
		}
	}
}

// A value of redis-cell does not contain the limit. It is therefore not known whether its time is
// too far ahead, and the key is blocked until it is reset.
func TestACellIsBlockedUntilItsResetAfterTheClockWasAhead(t *testing.T) {
	b := newLimiter(connect(t), "ahead", rediscell.Limit(9, 10, time.Second), errorOnOutage)
	_, err := b.TakeAt(t.Context(), time.Now().Add(time.Hour), "user", 1)
	require.NoError(t, err)
	r, err := b.Take(t.Context(), "user", 1)
	require.NoError(t, err)
	require.False(t, r.OK)
	require.Greater(t, r.RetryAfter, 59*time.Minute)
	require.NoError(t, b.Reset(t.Context(), "user"))
	requireTake(t, taken, b.Take, "user", 1)
}

// Two nodes use the same bucket with different bursts. The node with the smaller burst must not add
// tokens for the other node: more tokens than its own burst may be missing.
func TestNodesOfDifferentBurstsTakeNoMoreThanTheLargest(t *testing.T) {
	l := connect(t)
	for name, rate := range map[string]limiter.Rate{"whole": limiter.Per(100, time.Hour), "parts": limiter.Per(100, time.Hour+1)} {
		large := newLimiter(l, "bursts "+name, fleet.TokenBucket{Rate: rate, Burst: 100}, fleet.Config{OnOutage: fleet.FailError, MaxDenied: limiter.Off})
		small := newLimiter(l, "bursts "+name, fleet.TokenBucket{Rate: rate, Burst: 10}, fleet.Config{OnOutage: fleet.FailError, MaxDenied: limiter.Off})
		allowed := 0
		for range 50 {
			for _, b := range []*fleet.Limiter{large, small} {
				for _, n := range []int{10, 1} {
					r, err := b.Take(t.Context(), "user", n)
					require.NoError(t, err)
					if r.OK {
						allowed += n
					}
				}
			}
		}
		require.LessOrEqual(t, allowed, 100, name)
		require.NoError(t, small.Refund(t.Context(), time.Now(), "user", 1))
		requireTake(t, taken, large.Take, "user", 1)
		requireTake(t, refused, large.Take, "user", 1)
	}
}
