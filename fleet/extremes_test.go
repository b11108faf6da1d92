package fleet_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/fleet/rediscell"
	"github.com/weir-go/weir/limiter"
)

// limitsOfEachKind lists limits of every kind, each of 50 tokens per hour, and several limits
// together.
var limitsOfEachKind = map[string][]fleet.Limit{
	"bucket":          {fleet.TokenBucket{Rate: limiter.Per(50, time.Hour), Burst: 50}},
	"bucket of parts": {fleet.TokenBucket{Rate: limiter.Per(50, 3601*time.Second+1), Burst: 50}},
	"fixed":           {fleet.FixedWindow{Limit: 50, Window: 24 * time.Hour}},
	"sliding":         {fleet.SlidingWindow{Limit: 50, Window: time.Hour}},
	"log":             {fleet.SlidingLog{Limit: 50, Window: time.Hour}},
	"quota":           {dailyQuota(50)},
	"cell":            {rediscell.Limit(49, 50, time.Hour)},
	"several": {
		fleet.TokenBucket{Rate: limiter.Per(60, time.Hour), Burst: 60},
		fleet.FixedWindow{Limit: 70, Window: 24 * time.Hour},
		fleet.SlidingWindow{Limit: 80, Window: time.Hour},
		fleet.SlidingLog{Limit: 50, Window: time.Hour},
	},
}

// edgeNumbers lists numbers at which sums and products of tokens overflow, and numbers around the
// limit. If an int has 32 bits, the conversion turns the larger numbers into other numbers.
var edgeNumbers = edgeNumbersOf(1<<62, 1<<53+1, 1<<53, 1<<40, math.MaxUint32, math.MaxInt32+1)

func edgeNumbersOf(large ...int64) []int {
	all := []int{
		math.MaxInt, math.MaxInt - 1, math.MaxInt - 9, math.MaxInt - 99, math.MaxInt / 2, math.MaxInt/2 + 1,
		math.MaxInt32, 51, 50, 49, 7, 1, 0, -1, math.MinInt32, math.MinInt + 1, math.MinInt,
	}
	for _, n := range large {
		all = append(all, int(n))
	}
	return all
}

// Whatever numbers are taken and given back, no limit is exceeded and no result is out of range.
func TestNoNumberOfTokensIsTooLarge(t *testing.T) {
	l := connect(t)
	for name, limits := range limitsOfEachKind {
		for lease, c := range map[string]fleet.Config{
			"plain": {OnOutage: fleet.FailError, MaxDenied: limiter.Off}, "remembered": {OnOutage: fleet.FailError},
			"leased": {OnOutage: fleet.FailError, MaxDenied: limiter.Off, MaxLease: 10}, "leased and remembered": {OnOutage: fleet.FailError, MaxLease: 1_000_000},
		} {
			t.Run(name+", "+lease, func(t *testing.T) {
				t.Parallel()
				checkTakesAndRefunds(t, newLimiters(l, "extremes "+name+lease, c, limits...))
			})
		}
	}
}

func TestNoNumberOfTokensIsTooLargeWhileRedisIsUnavailable(t *testing.T) {
	_, l := unavailableLink(t)
	for name, limits := range limitsOfEachKind {
		t.Run(name, func(t *testing.T) {
			checkTakesAndRefunds(t, newLimiters(l, "extremes "+name, fleet.Config{OnOutage: fleet.FailLocal, Share: 1}, limits...))
		})
	}
}

// checkTakesAndRefunds takes and gives back random numbers of tokens.
func checkTakesAndRefunds(t *testing.T, l *fleet.Limiter) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	held := 0 // tokens taken and not given back
	var all []*fleet.Reservation
	for range 400 {
		n := edgeNumbers[random.IntN(len(edgeNumbers))]
		if random.IntN(2) == 0 {
			n = 1
		}
		if n < 1 && random.IntN(3) == 0 {
			for _, r := range all {
				require.NoError(t, r.Refund(t.Context(), n))
			}
			continue
		}
		r, err := l.Reserve(t.Context(), "k", n)
		require.NoError(t, err)
		all = append(all, r)
		require.False(t, r.OK && n < 0 || r.OK && n > 50, "Take(%d) = %+v", n, r)
		require.True(t, r.Remaining >= 0 && r.Remaining <= r.Limit && r.RetryAfter >= 0 && r.ResetAfter >= 0, "Take(%d) = %+v", n, r)
		if n > 50 || n < 0 {
			require.Equal(t, limiter.Never, r.RetryAfter, "Take(%d)", n)
		}
		if r.OK {
			held += n
		}
		require.LessOrEqual(t, held, 50, "after Take(%d)", n)
	}
	for name, value := range metricsOf(l) {
		require.GreaterOrEqual(t, value, 0.0, name)
	}
	for _, r := range all {
		require.NoError(t, r.Refund(t.Context(), math.MaxInt))
	}
	require.NoError(t, l.Close(t.Context()))
	// a bucket gets back less of each reservation, by what has been refilled since
	r, err := l.Take(t.Context(), "k", 40)
	require.NoError(t, err)
	require.True(t, r.OK, "after a Refund of everything: %+v", r)
	r, err = l.Take(t.Context(), "k", 11)
	require.NoError(t, err)
	require.False(t, r.OK)
}
