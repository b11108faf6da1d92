package otelmetric_test

import (
	"log/slog"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/weir-go/weir/exporters/otelmetric"
	"github.com/weir-go/weir/stat"
)

// register returns a reader of a provider with which the sources are registered.
func register(t *testing.T, sources ...stat.Source) sdk.Reader {
	t.Helper()
	r := sdk.NewManualReader()
	_, err := otelmetric.Register(sdk.NewMeterProvider(sdk.WithReader(r)), sources...)
	require.NoError(t, err)
	return r
}

func TestKindsOfInstruments(t *testing.T) {
	sum := func(monotonic bool) metricdata.Sum[float64] {
		return metricdata.Sum[float64]{Temporality: metricdata.CumulativeTemporality, IsMonotonic: monotonic}
	}
	for _, c := range []struct {
		instrument *stat.Instrument
		values     []string
		want       metricdata.Aggregation
		attrs      []attribute.KeyValue
	}{
		{instrumentNamed("weir.breaker.calls"), []string{"a", "success", ""}, sum(true), []attribute.KeyValue{
			attribute.String("weir.breaker.name", "a"), attribute.String("weir.breaker.outcome", "success"),
		}},
		{instrumentNamed("weir.breaker.state_time"), []string{"a", "open", ""}, sum(true), []attribute.KeyValue{
			attribute.String("weir.breaker.name", "a"), attribute.String("weir.breaker.state", "open"),
		}},
		{instrumentNamed("weir.breaker.state"), []string{"a", "open", ""}, sum(false), []attribute.KeyValue{
			attribute.String("weir.breaker.name", "a"), attribute.String("weir.breaker.state", "open"),
		}},
		{instrumentNamed("weir.breaker.window.failure_ratio"), []string{"a", ""}, metricdata.Gauge[float64]{}, []attribute.KeyValue{
			attribute.String("weir.breaker.name", "a"),
		}},
		{instrumentNamed("weir.alert.evaluations"), []string{"a", "page", ""}, sum(true), []attribute.KeyValue{
			attribute.String("weir.alert.rule", "a"), attribute.String("weir.alert.severity", "page"),
		}},
	} {
		got := metrics(t, register(t, newFakeSource(point{c.instrument.Series(c.values...), 2.5})))[0]
		require.Equal(t, c.instrument.Name, got.Name)
		require.Equal(t, c.instrument.Unit, got.Unit)
		require.Equal(t, c.instrument.Help, got.Description)
		require.Len(t, points(got.Data), 1, "of %s: %#v", got.Name, got.Data)
		require.Equal(t, 2.5, points(got.Data)[0].Value)
		require.Equal(t, attribute.NewSet(c.attrs...), points(got.Data)[0].Attributes)
		require.Equal(t, c.want, withoutPoints(got.Data))
	}
}

func withoutPoints(data metricdata.Aggregation) metricdata.Aggregation {
	switch d := data.(type) {
	case metricdata.Sum[float64]:
		d.DataPoints = nil
		return d
	case metricdata.Gauge[float64]:
		d.DataPoints = nil
		return d
	}
	return data
}

func TestCumulativeAndDeltaReaders(t *testing.T) {
	all, deltas := sdk.NewManualReader(), sdk.NewManualReader(sdk.WithTemporalitySelector(
		func(sdk.InstrumentKind) metricdata.Temporality { return metricdata.DeltaTemporality }))
	source := newFakeSource()
	_, err := otelmetric.Register(sdk.NewMeterProvider(sdk.WithReader(all), sdk.WithReader(deltas)), source)
	require.NoError(t, err)
	const a, b = "weir.breaker.slow_calls{weir.breaker.name=a}", "weir.breaker.slow_calls{weir.breaker.name=b}"
	first, second := slowCallsPoint("a", 0), slowCallsPoint("b", 0)
	for _, step := range []struct {
		do           []point
		total, delta map[string]float64
	}{
		{nil, map[string]float64{}, map[string]float64{}},
		{[]point{{first.series, 10}}, map[string]float64{a: 10}, map[string]float64{a: 10}},
		{[]point{{first.series, 10}}, map[string]float64{a: 10}, map[string]float64{a: 0}},
		{[]point{{first.series, 12}, {second.series, 1}}, map[string]float64{a: 12, b: 1}, map[string]float64{a: 2, b: 1}},
		{[]point{{second.series, 5}}, map[string]float64{b: 5}, map[string]float64{b: 4}},
	} {
		source.setPoints(step.do...)
		require.Equal(t, step.total, collect(t, all))
		require.Equal(t, step.delta, collect(t, deltas))
	}
}

func TestExporterMetricsExistFromTheStart(t *testing.T) {
	names := map[string]int{}
	for _, m := range metrics(t, register(t)) {
		names[m.Name] = len(points(m.Data))
	}
	require.Equal(t, map[string]int{"weir.exporter.source_panics": 1, "weir.exporter.skipped_samples": 3}, names)
}

func TestSourceGivenTwiceIsObservedOnce(t *testing.T) {
	b := newFakeSource(slowCallsPoint("a", 3))
	gate := newFakeSource(b.points[0], point{instrumentNamed("weir.limiter.requests").Series("a", "allowed"), 5})
	r := register(t, gate, b, b, gate)
	for range 3 { // as fresh series, and as known ones
		require.Equal(t, map[string]float64{
			"weir.breaker.slow_calls{weir.breaker.name=a}":                            3,
			"weir.limiter.requests{weir.limiter.name=a,weir.limiter.outcome=allowed}": 5,
		}, collect(t, r))
	}
}

func TestRegisterRefuses(t *testing.T) {
	odd := &stat.Instrument{Name: "shop.x", Kind: stat.Gauge, Attrs: []string{"a", "a"}}
	bad := &stat.Instrument{Name: "9 lives", Kind: stat.Counter}
	for want, sources := range map[string][]stat.Source{
		`stat: two different series are weir.breaker.slow_calls{weir.breaker.name="a", weir.group.key=""}: each source needs a name of its own`: {
			newFakeSource(slowCallsPoint("a", 1)), newFakeSource(slowCallsPoint("b", 2)), newFakeSource(slowCallsPoint("a", 3)),
		},
		`stat: source 2 of 2 is nil`:                                    {newFakeSource(), nil},
		`stat: the instrument shop.x has an attribute twice: ["a" "a"]`: {newFakeSource(point{odd.Series("1", "2"), 1})},
		`otelmetric: invalid instrument name: 9 lives`:                  {newFakeSource(point{bad.Series(), 1})},
	} {
		r := sdk.NewManualReader()
		registration, err := otelmetric.Register(sdk.NewMeterProvider(sdk.WithReader(r)), sources...)
		require.ErrorContains(t, err, want)
		require.Nil(t, registration)
		require.Empty(t, metrics(t, r))
	}
}

func TestInvalidSeriesThatAppearLaterAreSkipped(t *testing.T) {
	queue := &stat.Instrument{Name: "shop.queue.length", Kind: stat.UpDown}
	first, second := newFakeSource(slowCallsPoint("a", 1)), newFakeSource()
	r := register(t, first, second)
	second.setPoints(slowCallsPoint("a", 2), slowCallsPoint("b", 3), point{queue.Series(), 1}, point{&stat.Series{Instrument: instrumentNamed("weir.breaker.calls")}, 1})
	for n := range 2 {
		require.Equal(t, map[string]float64{
			"weir.breaker.slow_calls{weir.breaker.name=a}":                  1,
			"weir.breaker.slow_calls{weir.breaker.name=b}":                  3,
			"weir.exporter.skipped_samples{weir.exporter.reason=duplicate}": float64(n + 1),
			"weir.exporter.skipped_samples{weir.exporter.reason=malformed}": float64(n + 1),
			"weir.exporter.skipped_samples{weir.exporter.reason=unknown}":   float64(n + 1),
		}, collect(t, r))
	}
}

func TestPanickingSourceHidesNoOther(t *testing.T) {
	log, before := &strings.Builder{}, slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(log, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	bad := newFakeSource(slowCallsPoint("bad", 1))
	r := register(t, bad, newFakeSource(slowCallsPoint("good", 2)))
	bad.broken = "lost its lock"
	for n := range 3 {
		// collect fails the test if the reader gets an error, which would cost an export
		require.Equal(t, map[string]float64{
			"weir.breaker.slow_calls{weir.breaker.name=bad}":  1,
			"weir.breaker.slow_calls{weir.breaker.name=good}": 2,
			"weir.exporter.source_panics":                     float64(n + 1),
		}, collect(t, r))
	}
	require.Equal(t, 1, strings.Count(log.String(), "lost its lock"), "logged once: %s", log)
}

func TestUnregister(t *testing.T) {
	r := sdk.NewManualReader()
	provider := sdk.NewMeterProvider(sdk.WithReader(r))
	a, err := otelmetric.Register(provider, newFakeSource(slowCallsPoint("a", 1)))
	require.NoError(t, err)
	_, err = otelmetric.Register(provider, newFakeSource(slowCallsPoint("b", 2)))
	require.NoError(t, err)
	require.Len(t, collect(t, r), 2, "registrations are independent")

	require.NoError(t, a.Unregister())
	require.Equal(t, map[string]float64{"weir.breaker.slow_calls{weir.breaker.name=b}": 2}, collect(t, r))
}

// globalSetLater registers with the global provider and then sets it, which a process can do once.
var globalSetLater = sync.OnceValues(func() (sdk.Reader, error) {
	_, err := otelmetric.Register(otel.GetMeterProvider(), newFakeSource(slowCallsPoint("a", 1)))
	r := sdk.NewManualReader()
	otel.SetMeterProvider(sdk.NewMeterProvider(sdk.WithReader(r)))
	return r, err
})

func TestGlobalProviderMayBeSetLater(t *testing.T) {
	r, err := globalSetLater()
	require.NoError(t, err)
	require.Equal(t, map[string]float64{"weir.breaker.slow_calls{weir.breaker.name=a}": 1}, collect(t, r))
}

// Each reader has a pipeline of its own, and all call the same callback. A source given twice must
// count once in each, while series come and go.
func TestConcurrentReaders(t *testing.T) {
	readers := []sdk.Reader{sdk.NewManualReader(), sdk.NewManualReader(), sdk.NewManualReader()}
	provider := sdk.NewMeterProvider(sdk.WithReader(readers[0]), sdk.WithReader(readers[1]), sdk.WithReader(readers[2]))
	stable, flicker := newFakeSource(slowCallsPoint("stable", 1)), newFakeSource(slowCallsPoint("flicker", 1))
	_, err := otelmetric.Register(provider, stable, flicker, stable)
	require.NoError(t, err)
	kept := flicker.points

	var reading sync.WaitGroup
	for _, r := range readers {
		reading.Go(func() {
			for n := range 300 {
				var rm metricdata.ResourceMetrics
				if err := r.Collect(t.Context(), &rm); err != nil {
					t.Errorf("Collect = %v", err)
				}
				for _, p := range points(rm.ScopeMetrics[0].Metrics[0].Data) {
					if p.Value != 1 {
						t.Errorf("%v = %v, want 1", p.Attributes.ToSlice(), p.Value)
					}
				}
				flicker.setPoints(kept[:n%2]...)
			}
		})
	}
	reading.Wait()
}

func TestOnlyTheAPIIsLinked(t *testing.T) {
	deps, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	require.NoError(t, err)
	require.Contains(t, string(deps), "go.opentelemetry.io/otel/metric\n")
	require.NotContains(t, string(deps), "/sdk")
}
