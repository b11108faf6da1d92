package producer_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/weir-go/weir/exporters/otelmetric/producer"
	"github.com/weir-go/weir/stat"
)

// newReaderWith returns a reader of a producer with a config.
func newReaderWith(t *testing.T, c producer.Config, sources ...stat.Source) sdk.Reader {
	t.Helper()
	p, err := producer.New(c, sources...)
	require.NoError(t, err)
	r := sdk.NewManualReader(sdk.WithProducer(p))
	sdk.NewMeterProvider(sdk.WithReader(r))
	return r
}

// dataPoints returns the points of the only metric, or nil.
func dataPoints(t *testing.T, r sdk.Reader, want metricdata.Temporality) []point {
	t.Helper()
	metrics := collect(t, r)
	if len(metrics) == 0 {
		return nil
	}
	require.Len(t, metrics, 1)
	h, ok := metrics[0].Data.(metricdata.ExponentialHistogram[float64])
	require.True(t, ok)
	require.Equal(t, want, h.Temporality)
	return h.DataPoints
}

// memberHistogram is the histogram of a member of the group "g", created at a time.
func memberHistogram(key string, created time.Time, h stat.Histogram) seriesHistogram {
	s := instrumentNamed("weir.breaker.call.duration").Series("g", key)
	s.Created = created
	return seriesHistogram{s, h}
}

func TestDeltaExportsWhatCameSinceTheLastCollection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		created := time.Now()
		source := &histogramSource{
			memberHistogram("a", created, stat.Histogram{Schema: 3, Offset: 5, Counts: []int64{1, 2}, Zero: 1, Sum: 10, Max: 4}),
		}
		r := newReaderWith(t, producer.Config{Delta: true}, source)
		time.Sleep(time.Minute)
		first := time.Now()
		got := dataPoints(t, r, metricdata.DeltaTemporality)
		require.Len(t, got, 1)
		require.Equal(t, uint64(4), got[0].Count, "all since it was created")
		require.True(t, got[0].StartTime.Equal(created))

		time.Sleep(time.Minute)
		(*source)[0].histogram = stat.Histogram{Schema: 3, Offset: 4, Counts: []int64{3, 1, 2, 5}, Zero: 2, Sum: 25, Max: 4}
		got = dataPoints(t, r, metricdata.DeltaTemporality)
		require.Equal(t, buckets{Offset: 3, Counts: []uint64{3, 0, 0, 5}}, got[0].PositiveBucket)
		require.Equal(t, uint64(9), got[0].Count)
		require.Equal(t, uint64(1), got[0].ZeroCount)
		require.InDelta(t, 15, got[0].Sum, 1e-9)
		require.True(t, got[0].StartTime.Equal(first), "where the last interval ended")
		_, has := got[0].Max.Value()
		require.False(t, has, "not known")
		require.Zero(t, dataPoints(t, r, metricdata.DeltaTemporality)[0].Count, "nothing came")

		(*source)[0].histogram = stat.Histogram{Schema: 3, Offset: 5, Counts: []int64{1}, Sum: 1}
		got = dataPoints(t, r, metricdata.DeltaTemporality)
		require.Equal(t, uint64(1), got[0].Count, "it was made again")
		require.True(t, got[0].StartTime.Equal(created))
		*source = nil
		require.Empty(t, dataPoints(t, r, metricdata.DeltaTemporality))
	})
}

// A source that a collection has lacked does not give its whole life twice, whether it was removed
// or the set that it belongs to had it no longer.
func TestADeltaGoesOnAfterARemoval(t *testing.T) {
	for _, way := range []string{"Remove", "a set"} {
		t.Run(way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := &histogramSource{memberHistogram("a", time.Now(), stat.Histogram{Schema: 3, Offset: 5, Counts: []int64{4}, Sum: 4})}
				set := &changingSource{sources: []stat.Source{source}}
				given := stat.Source(source)
				if way == "a set" {
					given = set
				}
				p, err := producer.New(producer.Config{Delta: true}, given)
				require.NoError(t, err)
				r := sdk.NewManualReader(sdk.WithProducer(p))
				sdk.NewMeterProvider(sdk.WithReader(r))
				exported := time.Now()
				require.Equal(t, uint64(4), dataPoints(t, r, metricdata.DeltaTemporality)[0].Count)
				if set.sources = nil; given != set {
					p.Remove(source)
				}
				time.Sleep(time.Minute)
				require.Empty(t, dataPoints(t, r, metricdata.DeltaTemporality))
				(*source)[0].histogram = stat.Histogram{Schema: 3, Offset: 5, Counts: []int64{6}, Sum: 6}
				time.Sleep(time.Minute)
				if set.sources = []stat.Source{source}; given != set {
					require.NoError(t, p.Add(source))
				}
				got := dataPoints(t, r, metricdata.DeltaTemporality)
				require.Equal(t, uint64(2), got[0].Count)
				require.True(t, got[0].StartTime.Equal(exported))
			})
		})
	}
}

// changingSource is a source that consists of others, as a weirconfig.Set does.
type changingSource struct{ sources []stat.Source }

func (*changingSource) Observe(func(*stat.Series, float64) bool) {}
func (s *changingSource) Sources() []stat.Source                 { return s.sources }

func TestPointsWithoutAnAttributeAreSummed(t *testing.T) {
	created := time.Unix(1000, 0)
	source := &histogramSource{
		memberHistogram("a", created.Add(time.Hour), stat.Histogram{Schema: 3, Offset: 5, Counts: []int64{1, 2}, Sum: 10, Max: 4}),
		memberHistogram("e", created.Add(time.Hour), stat.Histogram{Schema: 3, Offset: 5, Counts: []int64{4}}),
		memberHistogram("b", created, stat.Histogram{Schema: 3, Offset: 2, Counts: []int64{7}, Zero: 1, Sum: 1, Max: 2}),
		memberHistogram("c", created, stat.Histogram{Schema: 3, Sum: 0}),
		memberHistogram("d", created, stat.Histogram{Schema: 3, Offset: 6, Counts: []int64{10, 20}, Sum: 100, Max: 9}),
	}
	c := producer.Config{Attributes: attribute.NewDenyKeysFilter("weir.group.key")}
	r := newReaderWith(t, c, source)
	got := dataPoints(t, r, metricdata.CumulativeTemporality)
	require.Len(t, got, 1)
	require.Equal(t, attribute.NewSet(attribute.String("weir.breaker.name", "g")), got[0].Attributes)
	require.Equal(t, buckets{Offset: 1, Counts: []uint64{7, 0, 0, 5, 12, 20}}, got[0].PositiveBucket)
	require.Equal(t, uint64(45), got[0].Count)
	require.Equal(t, uint64(1), got[0].ZeroCount)
	require.InDelta(t, 111, got[0].Sum, 1e-9)
	require.True(t, got[0].StartTime.Equal(created), "the first of all")
	most, _ := got[0].Max.Value()
	require.InDelta(t, 9, most, 0)
	require.Equal(t, []int64{1, 2}, (*source)[0].histogram.Counts, "a source keeps its counts")
	require.Len(t, dataPoints(t, newReaderWith(t, producer.Config{}, source), metricdata.CumulativeTemporality), 5)
}

// The calls of a member that loses its series move to another member. The sum is the same.
func TestADeltaIsThatOfTheSum(t *testing.T) {
	five, none := stat.Histogram{Schema: 3, Offset: 5, Counts: []int64{5}, Sum: 5}, stat.Histogram{Schema: 3}
	source := &histogramSource{memberHistogram("a", time.Time{}, five), memberHistogram("_other", time.Time{}, none)}
	r := newReaderWith(t, producer.Config{Delta: true, Attributes: attribute.NewAllowKeysFilter("weir.breaker.name")}, source)
	require.Equal(t, uint64(5), dataPoints(t, r, metricdata.DeltaTemporality)[0].Count)
	*source = histogramSource{memberHistogram("_other", time.Time{}, five)}
	require.Zero(t, dataPoints(t, r, metricdata.DeltaTemporality)[0].Count)
}
