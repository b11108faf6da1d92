package weir_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
)

// readMetrics returns the values and the series of a source by the names of their instruments.
func readMetrics(s stat.Source) (values map[string]float64, series map[string]*stat.Series) {
	values, series = map[string]float64{}, map[string]*stat.Series{}
	for line, v := range s.Observe {
		values[line.Instrument.Name], series[line.Instrument.Name] = v, line
	}
	return values, series
}

func TestObserveYieldsTheLimit(t *testing.T) {
	values, _ := readMetrics(weir.New("g", weir.Config{Rate: limiter.PerSecond(2), Burst: 10}))
	require.InDelta(t, 10, values["weir.limiter.limit"], 0)
	require.InDelta(t, 5, values["weir.limiter.period"], 0)

	unlimited := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Unlimited()})
	values, _ = readMetrics(weir.Join("g", weir.Parts{Breaker: breaker.New("b", breaker.Config{}), Limiter: unlimited}))
	require.Contains(t, values, "weir.limiter.requests")
	for _, name := range []string{"available", "limit", "period"} {
		require.NotContains(t, values, "weir.limiter."+name)
	}

	bucket := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(2), Burst: 10})
	timeless := limiter.NewJoint(limiter.JointConfig{}, bucket, unlimited)
	values, _ = readMetrics(weir.Join("g", weir.Parts{Breaker: breaker.New("b", breaker.Config{}), Limiter: timeless}))
	require.InDelta(t, 10, values["weir.limiter.limit"], 0)
	require.NotContains(t, values, "weir.limiter.period")
}

func TestLimiterCountersHaveACreationTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		g := hosts(weir.GroupConfig{Gate: weir.Config{Rate: limiter.PerSecond(1)}})
		time.Sleep(time.Hour)
		_, series := readMetrics(g)
		for _, name := range []string{"requests", "tokens", "evictions"} {
			require.Equal(t, began, series["weir.limiter."+name].Created, name)
		}
	})
}

func TestHistogramsYieldDurationsOfCalls(t *testing.T) {
	g := weir.New("g", weir.Config{Breaker: breaker.Config{Latency: true}})
	require.NoError(t, g.Run(t.Context(), succeed))
	var calls int64
	for _, h := range g.Histograms {
		calls += h.Count()
	}
	require.EqualValues(t, 1, calls)
}
