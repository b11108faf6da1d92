package producer_test

import (
	"context"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/exporters/otelmetric/producer"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/stat/read"
	"github.com/weir-go/weir/window"
)

type (
	point   = metricdata.ExponentialHistogramDataPoint[float64]
	buckets = metricdata.ExponentialBucket
)

// histogramSource is a source with histograms only.
type histogramSource []seriesHistogram

type seriesHistogram struct {
	series    *stat.Series
	histogram stat.Histogram
}

func (s *histogramSource) Observe(func(*stat.Series, float64) bool) {}

func (s *histogramSource) Histograms(yield func(*stat.Series, stat.Histogram) bool) {
	for _, one := range *s {
		if !yield(one.series, one.histogram) {
			return
		}
		if one.histogram.Sum < 0 {
			panic("negative time")
		}
	}
}

func durationsOf(name string, h stat.Histogram) seriesHistogram {
	return seriesHistogram{instrumentNamed("weir.breaker.call.duration").Series(name, ""), h}
}

// collect returns the metrics of a reader with only a producer of the sources.
func collect(t *testing.T, r sdk.Reader) []metricdata.Metrics {
	t.Helper()
	var rm metricdata.ResourceMetrics
	require.NoError(t, r.Collect(t.Context(), &rm))
	if len(rm.ScopeMetrics) == 0 {
		return nil
	}
	require.Len(t, rm.ScopeMetrics, 1)
	require.Equal(t, "github.com/weir-go/weir/exporters/otelmetric/producer", rm.ScopeMetrics[0].Scope.Name)
	return rm.ScopeMetrics[0].Metrics
}

func newReader(t *testing.T, sources ...stat.Source) sdk.Reader {
	t.Helper()
	p, err := producer.New(producer.Config{}, sources...)
	require.NoError(t, err)
	r := sdk.NewManualReader(sdk.WithProducer(p), sdk.WithTemporalitySelector(func(sdk.InstrumentKind) metricdata.Temporality {
		return metricdata.DeltaTemporality // which makes no difference
	}))
	sdk.NewMeterProvider(sdk.WithReader(r)) // without which a reader reads nothing
	return r
}

func points(t *testing.T, m metricdata.Metrics) []point {
	t.Helper()
	require.Equal(t, "weir.breaker.call.duration", m.Name)
	require.Equal(t, "s", m.Unit)
	require.Equal(t, instrumentNamed("weir.breaker.call.duration").Help, m.Description)
	h, ok := m.Data.(metricdata.ExponentialHistogram[float64])
	require.True(t, ok, "%T", m.Data)
	require.Equal(t, metricdata.CumulativeTemporality, h.Temporality)
	return h.DataPoints
}

// TestHistogramsEqualThoseOfTheSDK records the same durations in a window and in an exponential
// histogram of the SDK.
func TestHistogramsEqualThoseOfTheSDK(t *testing.T) {
	r := sdk.NewManualReader(sdk.WithAggregationSelector(func(sdk.InstrumentKind) sdk.Aggregation {
		return sdk.AggregationBase2ExponentialHistogram{MaxSize: 400, MaxScale: 3}
	}))
	theirs, err := sdk.NewMeterProvider(sdk.WithReader(r)).Meter("test").Float64Histogram("h", metric.WithUnit("s"))
	require.NoError(t, err)
	start, rnd := time.Now(), rand.New(rand.NewPCG(5, 6))
	ours := window.NewCallsAt(window.CallsConfig{Latency: true}, start)
	for range 5000 {
		took := time.Duration(rnd.Int64N(int64(4096*time.Second))>>rnd.IntN(30)) + time.Microsecond
		ours.RecordAt(start, window.Success, took)
		theirs.Record(t.Context(), took.Seconds())
	}
	var rm metricdata.ResourceMetrics
	require.NoError(t, r.Collect(t.Context(), &rm))
	want := rm.ScopeMetrics[0].Metrics[0].Data.(metricdata.ExponentialHistogram[float64]).DataPoints[0]

	l := ours.LifetimeLatency()
	got := points(t, collect(t, newReader(t, &histogramSource{durationsOf("a", l.Histogram())}))[0])[0]
	require.Equal(t, want.Count, got.Count)
	require.Equal(t, want.Scale, got.Scale)
	require.Equal(t, want.PositiveBucket, got.PositiveBucket)
	require.Equal(t, want.Max, got.Max)
	require.InDelta(t, want.Sum, got.Sum, 5e-3, "sums are exact to a microsecond per call")
}

func TestEachSeriesIsAPoint(t *testing.T) {
	began := time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC)
	sizes := &stat.Instrument{Name: "shop.mail.size", Unit: "By", Kind: stat.Distribution, Attrs: []string{"queue", "kind"}, Help: "Help."}
	source := &histogramSource{
		{sizes.Series("x", ""), stat.Histogram{Schema: -4, Offset: -3, Counts: []int64{1, 0, 2}, Sum: 7}},
		durationsOf("a", stat.Histogram{Schema: 3, Zero: 2, ZeroThreshold: 0.5, Offset: 8, Counts: []int64{5}, Sum: 9, Max: 2}),
		durationsOf("b", stat.Histogram{}),
	}
	for _, s := range *source {
		s.series.Created = began
	}
	before := time.Now()
	metrics := collect(t, newReader(t, source, source))
	require.Len(t, metrics, 2)
	got := points(t, metrics[0])
	require.Len(t, got, 2)
	require.False(t, got[0].Time.Before(before))
	require.Equal(t, point{
		Attributes: attribute.NewSet(attribute.String("weir.breaker.name", "a")), StartTime: began, Time: got[0].Time,
		Count: 7, Sum: 9, Scale: 3, ZeroCount: 2, ZeroThreshold: 0.5, Max: metricdata.NewExtrema(2.0),
		PositiveBucket: buckets{Offset: 7, Counts: []uint64{5}},
	}, got[0])
	require.Equal(t, point{
		Attributes: attribute.NewSet(attribute.String("weir.breaker.name", "b")), StartTime: began, Time: got[0].Time,
		PositiveBucket: buckets{Offset: -1, Counts: []uint64{}},
	}, got[1])
	other := metrics[1].Data.(metricdata.ExponentialHistogram[float64]).DataPoints[0]
	require.Equal(t, attribute.NewSet(attribute.String("queue", "x")), other.Attributes)
	require.Equal(t, buckets{Offset: -4, Counts: []uint64{1, 0, 2}}, other.PositiveBucket)
	_, known := other.Max.Value()
	require.False(t, known)
}

func TestLatencyOfABreakerIsExported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		payments, users := breaker.New("payments", breaker.Config{Latency: true}), breaker.New("users", breaker.Config{})
		r := newReader(t, payments, users)
		for range 3 {
			require.NoError(t, payments.Run(t.Context(), func(context.Context) error { time.Sleep(time.Second); return nil }))
		}
		got := points(t, collect(t, r)[0])
		require.Len(t, got, 1)
		require.EqualValues(t, 3, got[0].Count)
		require.Equal(t, 3.0, got[0].Sum)
		require.Equal(t, buckets{Offset: -1, Counts: []uint64{3}}, got[0].PositiveBucket, "a second ends the bucket from 2^(-1/8)")
		require.True(t, got[0].StartTime.Equal(began))
		require.True(t, got[0].Time.Equal(began.Add(3*time.Second)))
	})
}

func TestSourcesWithoutHistograms(t *testing.T) {
	require.Empty(t, collect(t, newReader(t)))
	require.Empty(t, collect(t, newReader(t, breaker.New("a", breaker.Config{}))))
}

func TestNewRefuses(t *testing.T) {
	_, err := producer.New(producer.Config{}, breaker.New("a", breaker.Config{Latency: true}), breaker.New("a", breaker.Config{Latency: true}))
	require.ErrorContains(t, err, "each source needs a name of its own")
	_, err = producer.New(producer.Config{}, nil)
	require.EqualError(t, err, "stat: source 1 of 1 is nil")
}

func TestInvalidHistogramsAreLeftOut(t *testing.T) {
	var log strings.Builder
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })

	good := durationsOf("good", stat.Histogram{Schema: 3, Counts: []int64{1}})
	source := &histogramSource{good}
	r := newReader(t, source)
	*source = histogramSource{
		durationsOf("bad", stat.Histogram{Schema: 99}), durationsOf("bad", stat.Histogram{Counts: []int64{math.MinInt64}}), good,
		durationsOf("good", stat.Histogram{}), durationsOf("quo\"ted\n\xff", stat.Histogram{Sum: -1}), durationsOf("never said", stat.Histogram{}),
	}
	got := points(t, collect(t, r)[0])
	require.Len(t, got, 2)
	require.Equal(t, attribute.NewSet(attribute.String("weir.breaker.name", "good")), got[0].Attributes)
	require.Equal(t, attribute.NewSet(attribute.String("weir.breaker.name", "quo\"ted\n\uFFFD")), got[1].Attributes)
	require.Contains(t, log.String(), "negative time")
}

func TestSourcesComeAndGo(t *testing.T) {
	one := stat.Histogram{Counts: []int64{1}, Sum: 1}
	a, b := &histogramSource{durationsOf("a", one)}, &histogramSource{durationsOf("b", one)}
	p, err := producer.New(producer.Config{}, a)
	require.NoError(t, err)
	names := func() (list []string) {
		got, err := p.Produce(t.Context())
		require.NoError(t, err)
		for _, s := range got {
			for _, m := range s.Metrics {
				for _, dp := range m.Data.(metricdata.ExponentialHistogram[float64]).DataPoints {
					name, _ := dp.Attributes.Value("weir.breaker.name")
					list = append(list, name.AsString())
				}
			}
		}
		return list
	}
	require.NoError(t, p.Add(b, a))
	require.Equal(t, []string{"a", "b"}, names())
	require.ErrorContains(t, p.Add(&histogramSource{durationsOf("b", one)}), "two different series are")
	p.Remove(a)
	require.Equal(t, []string{"b"}, names())
}

// catalogue returns the instruments of weir: those of a set without sources.
func catalogue() []*stat.Instrument {
	set, err := read.New(func(*stat.Series) int { return 0 })
	if err != nil {
		panic(err)
	}
	return set.Instruments()
}

// instrumentNamed returns weir's instrument of that name.
func instrumentNamed(name string) *stat.Instrument {
	list := catalogue()
	return list[slices.IndexFunc(list, func(i *stat.Instrument) bool { return i.Name == name })]
}
