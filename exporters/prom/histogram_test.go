package prom_test

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/exporters/prom"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/window"
)

// gatherHistogram gathers the only histogram.
func gatherHistogram(t *testing.T, g prometheus.Gatherer) *dto.Histogram {
	t.Helper()
	families, err := g.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetType() == dto.MetricType_HISTOGRAM {
			require.Len(t, f.Metric, 1)
			return f.Metric[0].Histogram
		}
	}
	require.Fail(t, "no histogram")
	return nil
}

// TestHistogramsEqualPrometheusHistograms records the same durations in a window and in a histogram
// of Prometheus that is both native and classic.
func TestHistogramsEqualPrometheusHistograms(t *testing.T) {
	start := time.Now()
	rnd := rand.New(rand.NewPCG(7, 8))
	for _, size := range []int{0, 1, 2, 5, 50, 5000} {
		theirs := prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "h", Help: "h.", Buckets: instrumentNamed("weir.breaker.call.duration").Bounds,
			NativeHistogramBucketFactor: math.Exp2(1.0 / 8), NativeHistogramZeroThreshold: math.Ldexp(1, -20),
		})
		ours := window.NewCallsAt(window.CallsConfig{Latency: true}, start)
		for range size {
			took := time.Duration(rnd.Int64N(int64(4096*time.Second)) >> rnd.IntN(44))
			ours.RecordAt(start, window.Success, took)
			theirs.Observe(took.Seconds())
		}
		var want dto.Metric
		require.NoError(t, theirs.Write(&want))

		l := ours.LifetimeLatency()
		_, r := register(t, &fakeSource{spreads: []seriesHistogram{
			{instrumentNamed("weir.breaker.call.duration").Series("a", ""), l.Histogram()},
		}})
		got := gatherHistogram(t, r)
		require.InDelta(t, want.Histogram.GetSampleSum(), got.GetSampleSum(), 1e-6*float64(size), "sums are exact to a microsecond per call")
		got.SampleSum, got.CreatedTimestamp = want.Histogram.SampleSum, want.Histogram.CreatedTimestamp
		require.Equal(t, want.Histogram.String(), got.String(), "of %d values", size)
	}
}

func TestHistogramsAsText(t *testing.T) {
	sizes := &stat.Instrument{
		Name: "shop.mail.size", Unit: "By", Kind: stat.Distribution, Attrs: []string{"queue"}, Help: "Size of mails.",
		Bounds: []float64{1 << 10, 1 << 15, 1 << 20},
	}
	source := &fakeSource{spreads: []seriesHistogram{{sizes.Series("mail"), stat.Histogram{Schema: 0, Offset: 10, Counts: []int64{2, 1}, Zero: 4, Sum: 3000}}}}
	require.NoError(t, testutil.CollectAndCompare(prom.NewCollector(source), strings.NewReader(`
		# HELP shop_mail_size_bytes Size of mails.
		# TYPE shop_mail_size_bytes histogram
		shop_mail_size_bytes_bucket{queue="mail",le="1024"} 6
		shop_mail_size_bytes_bucket{queue="mail",le="32768"} 7
		shop_mail_size_bytes_bucket{queue="mail",le="1.048576e+06"} 7
		shop_mail_size_bytes_bucket{queue="mail",le="+Inf"} 7
		shop_mail_size_bytes_sum{queue="mail"} 3000
		shop_mail_size_bytes_count{queue="mail"} 7
	`), "shop_mail_size_bytes"))
}

func TestEmptyHistogramIsNative(t *testing.T) {
	_, r := register(t, &fakeSource{spreads: []seriesHistogram{
		{instrumentNamed("weir.breaker.call.duration").Series("a", ""), stat.Histogram{Schema: 3}},
	}})
	require.Len(t, gatherHistogram(t, r).PositiveSpan, 1, "without a span Prometheus would take it for a classic histogram")
}

func TestHistogramsOfGatesAndBreakers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := breaker.Config{Latency: true}
		gate := weir.New("payments", weir.Config{Breaker: c})
		_, r := register(t, gate, gate.Breaker(), breaker.New("users", breaker.Config{}))
		for _, took := range []time.Duration{30 * time.Millisecond, 3 * time.Second} {
			require.NoError(t, gate.Run(t.Context(), func(context.Context) error { time.Sleep(took); return nil }))
		}
		lines, err := sampleLines(r, "weir_breaker_call_duration_seconds")
		require.NoError(t, err)
		require.Len(t, lines, 23)
		require.Contains(t, lines, `weir_breaker_call_duration_seconds_bucket{weir_breaker_name="payments",weir_group_key="",le="0.015625"} 0`)
		require.Contains(t, lines, `weir_breaker_call_duration_seconds_bucket{weir_breaker_name="payments",weir_group_key="",le="0.03125"} 1`)
		require.Contains(t, lines, `weir_breaker_call_duration_seconds_bucket{weir_breaker_name="payments",weir_group_key="",le="2"} 1`)
		require.Contains(t, lines, `weir_breaker_call_duration_seconds_bucket{weir_breaker_name="payments",weir_group_key="",le="4"} 2`)
		require.Contains(t, lines, `weir_breaker_call_duration_seconds_bucket{weir_breaker_name="payments",weir_group_key="",le="+Inf"} 2`)
		require.Contains(t, lines, `weir_breaker_call_duration_seconds_sum{weir_breaker_name="payments",weir_group_key=""} 3.03`)
	})
}

func TestInvalidHistogramIsSkipped(t *testing.T) {
	source := &fakeSource{spreads: []seriesHistogram{{instrumentNamed("weir.breaker.call.duration").Series("a", ""), stat.Histogram{}}}}
	_, r := register(t, source)
	for _, bad := range []stat.Histogram{{Schema: 30}, {Counts: []int64{-1}}, {Offset: math.MaxInt}} {
		source.spreads[0].histogram = bad
		before := skippedSamples(t, r, "malformed")
		require.Empty(t, scrape(t, r), "%v", bad)
		require.Equal(t, before+2, skippedSamples(t, r, "malformed"), "%v: counted by the same scrape", bad)
	}
}

func TestCallOfAnExportedBreakerAllocatesNothing(t *testing.T) {
	for _, c := range []breaker.Config{{}, {Latency: true}, {Latency: true, SlowCall: time.Second}} {
		b := breaker.New("a", c)
		_, r := register(t, b)
		scrape(t, r)
		ctx, call := t.Context(), func(context.Context) error { return nil }
		require.NoError(t, b.Run(ctx, call))
		require.Zero(t, testing.AllocsPerRun(100, func() { _ = b.Run(ctx, call) }), "%+v", c)
	}
}
