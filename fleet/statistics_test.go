package fleet_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/stat/read"
)

func TestLimiterMetrics(t *testing.T) {
	l := connect(t)
	b := newLimiter(l, "metrics", fleet.TokenBucket{Rate: limiter.Per(1, time.Hour), Burst: 5}, errorOnOutage)
	for _, n := range []int{3, 0, 9, 2, 1, -4} {
		_, err := b.Take(t.Context(), "user", n)
		require.NoError(t, err)
	}
	require.NoError(t, b.Refund(t.Context(), time.Now(), "user", 2))
	require.NoError(t, b.Wait(t.Context(), "user", 2))
	require.Error(t, waitWithin(t, b, time.Second, "user", 4))
	require.NoError(t, newClient(t, sharedServer()).Set(t.Context(), b.StateKeys("foreign")[0], "x", time.Minute).Err())
	_, err := b.Take(t.Context(), "foreign", 1)
	require.ErrorIs(t, err, fleet.ErrForeign)

	got := metricsOf(b)
	for name, want := range map[string]float64{
		"weir.limiter.requests allowed": 3, "weir.limiter.tokens allowed": 7,
		"weir.limiter.requests refused": 4, "weir.limiter.tokens refused": 14,
		"weir.limiter.requests waited": 0, "weir.limiter.requests cancelled": 0, "weir.limiter.waiting": 0, "weir.limiter.limit": 5,
		"weir.limiter.backend.errors foreign": 1, "weir.limiter.backend.errors timeout": 0,
	} {
		require.InDelta(t, want, got[name], 0, name)
	}
}

func TestSeriesAreBuiltOnceAndNeverTheKeys(t *testing.T) {
	l := connect(t)
	b := newBucket(l, errorOnOutage)
	collect := func() map[*stat.Series]bool {
		series := map[*stat.Series]bool{}
		for s := range b.Observe {
			require.Equal(t, "bucket", s.Values[0])
			series[s] = true
		}
		return series
	}
	before := collect()
	for _, key := range hostileKeys {
		_, err := b.Take(t.Context(), key, 1)
		require.NoError(t, err)
	}
	require.Equal(t, before, collect())
	set, err := read.New(func(s *stat.Series) string { return s.ID() }, b, l)
	require.NoError(t, err)
	calls := 0.0
	for id, value := range set.Observe {
		if id == "weir.breaker.calls\xff"+t.Name()+"\xffsuccess\xff" {
			calls = value
		}
	}
	require.InDelta(t, len(hostileKeys)+1, calls, 0, "the breaker of Redis has its own metrics")
}

func TestACountOfTokensStaysAtTheLargestNumber(t *testing.T) {
	b := newLimiter(connect(t), "many", hourlyBucket, errorOnOutage)
	for range 3 {
		_, err := b.Take(t.Context(), "k", math.MaxInt)
		require.NoError(t, err)
		require.InEpsilon(t, float64(math.MaxInt64), metricsOf(b)["weir.limiter.tokens refused"], 1e-9)
	}
}

// A loop over the series of a source may end after any of them: the runtime panics if the source
// continues.
func TestObserveStopsAtAnySeries(t *testing.T) {
	link := connect(t)
	for name, s := range map[string]stat.Source{"limiter": newBucket(link, errorOnOutage), "link": link, "window": join(t, link, fastFlushes)} {
		all := 0
		for range s.Observe {
			all++
		}
		require.Positive(t, all, name)
		for last := range all {
			round := 0
			for range s.Observe {
				if round == last {
					break
				}
				round++
			}
			require.Equal(t, last, round, name)
		}
	}
}

// The instruments equal those of the core.
func TestInstrumentsEqualThoseOfTheCore(t *testing.T) {
	link := connect(t)
	set, err := read.New(func(s *stat.Series) *stat.Instrument { return s.Instrument })
	require.NoError(t, err)
	for _, s := range []stat.Source{newBucket(link, errorOnOutage), link, join(t, link, fastFlushes)} {
		for series := range s.Observe {
			require.Contains(t, set.Instruments(), series.Instrument)
		}
		require.NoError(t, set.Add(s))
	}
}
