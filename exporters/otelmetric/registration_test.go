package otelmetric_test

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/exporters/otelmetric"
	"github.com/weir-go/weir/stat"
)

const seriesA, seriesB = "weir.breaker.slow_calls{weir.breaker.name=a}", "weir.breaker.slow_calls{weir.breaker.name=b}"

func TestDuplicateNamesAreRefusedAcrossRegistrations(t *testing.T) {
	r := sdk.NewManualReader()
	p := sdk.NewMeterProvider(sdk.WithReader(r))
	first, err := otelmetric.Register(p, breaker.New("payments", breaker.Config{}))
	require.NoError(t, err)
	second := breaker.New("payments", breaker.Config{})
	second.Force(breaker.ForcedOpen, "")
	refused, err := otelmetric.Register(p, second)
	require.ErrorContains(t, err, "two different series are")
	require.Nil(t, refused)
	require.ErrorContains(t, first.Add(second), "two different series are")
	got := collect(t, r)
	require.Equal(t, 1.0, got["weir.breaker.state{weir.breaker.name=payments,weir.breaker.state=closed}"])
	require.Zero(t, got["weir.breaker.state{weir.breaker.name=payments,weir.breaker.state=forced_open}"])

	_, err = otelmetric.Register(sdk.NewMeterProvider(), second)
	require.NoError(t, err, "providers are independent")
	require.NoError(t, first.Unregister())
	_, err = otelmetric.Register(p, second)
	require.NoError(t, err, "the name can be used again")
}

func TestSourceOfSeveralRegistrationsIsObservedOnce(t *testing.T) {
	r := sdk.NewManualReader()
	p := sdk.NewMeterProvider(sdk.WithReader(r))
	a := newFakeSource(slowCallsPoint("a", 1))
	first, err := otelmetric.Register(p, a, a)
	require.NoError(t, err)
	second, err := otelmetric.Register(p, a)
	require.NoError(t, err)
	require.Equal(t, map[string]float64{seriesA: 1}, collect(t, r))
	require.NoError(t, first.Unregister())
	require.NoError(t, first.Unregister(), "a second call does nothing")
	require.Equal(t, map[string]float64{seriesA: 1}, collect(t, r))
	require.NoError(t, second.Unregister())
	require.Empty(t, metrics(t, r), "not even the exporter's metrics")
	require.EqualError(t, second.Add(a), "otelmetric: the registration has ended")

	_, err = otelmetric.Register(p, a)
	require.NoError(t, err)
	require.Equal(t, map[string]float64{seriesA: 1}, collect(t, r))
}

func TestSourcesComeAndGo(t *testing.T) {
	r := sdk.NewManualReader()
	p := sdk.NewMeterProvider(sdk.WithReader(r))
	a, b := newFakeSource(slowCallsPoint("a", 1)), newFakeSource(slowCallsPoint("b", 2))
	registration, err := otelmetric.Register(p)
	require.NoError(t, err)
	other, err := otelmetric.Register(p, b)
	require.NoError(t, err)
	require.NoError(t, registration.Add(a, b))
	require.Equal(t, map[string]float64{seriesA: 1, seriesB: 2}, collect(t, r))
	registration.Remove(a, newFakeSource(), nil)
	require.Equal(t, map[string]float64{seriesB: 2}, collect(t, r))
	other.Remove(a, b)
	require.Equal(t, map[string]float64{seriesB: 2}, collect(t, r), "the first registration still has the source")
	require.ErrorContains(t, registration.Add(a, nil), "is nil")
	require.Equal(t, map[string]float64{seriesB: 2}, collect(t, r), "all or nothing")
	require.NoError(t, registration.Add(newFakeSource(slowCallsPoint("a", 3)), fixedSource{slowCallsPoint("c", 4)}))
	require.Len(t, collect(t, r), 3)
	require.NoError(t, registration.Unregister())
	require.Empty(t, collect(t, r), "not even sources that are not comparable")
}

// A callback gets its instruments once, so a source with other instruments needs a new callback. No
// collection exports a source by both.
func TestLaterRegistrationMayAddInstruments(t *testing.T) {
	r := sdk.NewManualReader()
	p := sdk.NewMeterProvider(sdk.WithReader(r))
	a := newFakeSource(slowCallsPoint("a", 1))
	_, err := otelmetric.Register(p, a)
	require.NoError(t, err)
	var collecting sync.WaitGroup
	done := make(chan struct{})
	collecting.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			var rm metricdata.ResourceMetrics
			if err := r.Collect(t.Context(), &rm); err != nil {
				t.Errorf("Collect = %v", err)
			}
			for _, s := range rm.ScopeMetrics {
				for _, p := range points(s.Metrics[0].Data) {
					if p.Value > 1 {
						t.Errorf("%v = %v", p.Attributes.ToSlice(), p.Value)
					}
				}
			}
		}
	})
	for n := range 50 {
		queue := &stat.Instrument{Name: fmt.Sprint("shop.queue.length", n), Kind: stat.UpDown}
		later, err := otelmetric.Register(p, newFakeSource(point{queue.Series(), 1}))
		require.NoError(t, err)
		_, err = otelmetric.Register(p, newFakeSource(slowCallsPoint("a", 9),
			point{(&stat.Instrument{Name: "shop.x", Kind: stat.Gauge}).Series(), 1}))
		require.ErrorContains(t, err, "two different series are")
		require.NoError(t, later.Unregister())
	}
	close(done)
	collecting.Wait()
	bad := &stat.Instrument{Name: "9 lives", Kind: stat.Counter}
	_, err = otelmetric.Register(p, newFakeSource(point{bad.Series(), 1}))
	require.EqualError(t, err, "otelmetric: invalid instrument name: 9 lives: must start with a letter")
	require.Equal(t, map[string]float64{seriesA: 1}, collect(t, r))
}

func TestMemoryOfARegistration(t *testing.T) {
	p := sdk.NewMeterProvider(sdk.WithReader(sdk.NewManualReader()))
	kept := make([]*otelmetric.Registration, 0, 1001)
	register := func(n int) {
		one, err := otelmetric.Register(p, newFakeSource(slowCallsPoint(fmt.Sprint("breaker", n), 1)))
		require.NoError(t, err)
		kept = append(kept, one)
	}
	register(1000)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for n := range 1000 {
		register(n)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	require.Less(t, (int64(after.HeapAlloc)-int64(before.HeapAlloc))/1000, int64(2000), "bytes per registration of a source with one series")
	runtime.KeepAlive(kept)
}

func TestProvidersAreGarbageCollected(t *testing.T) {
	last := func() weak.Pointer[sdk.MeterProvider] {
		p := sdk.NewMeterProvider(sdk.WithReader(sdk.NewManualReader()))
		_, err := otelmetric.Register(p, newFakeSource(slowCallsPoint("a", 1)))
		require.NoError(t, err)
		return weak.Make(p)
	}()
	require.Eventually(t, func() bool {
		runtime.GC()
		return last.Value() == nil
	}, time.Minute, time.Millisecond)
}

func TestProvidersWithoutAnAddress(t *testing.T) {
	for range 2 {
		registration, err := otelmetric.Register(noop.NewMeterProvider(), newFakeSource(slowCallsPoint("a", math.NaN())))
		require.NoError(t, err)
		require.NoError(t, registration.Unregister())
		_, err = otelmetric.Register(&noop.MeterProvider{}, newFakeSource(slowCallsPoint("a", 1)))
		require.NoError(t, err)
	}
}

// Registrations of one provider come and go concurrently with collections. No collection has a
// series twice, and each has the series of a permanent registration.
func TestConcurrentRegistrations(t *testing.T) {
	r := sdk.NewManualReader()
	p := sdk.NewMeterProvider(sdk.WithReader(r))
	stable := newFakeSource(slowCallsPoint("stable", 1))
	_, err := otelmetric.Register(p, stable)
	require.NoError(t, err)
	var changing sync.WaitGroup
	for n := range 4 {
		changing.Go(func() {
			for k := range 200 {
				guest := newFakeSource(slowCallsPoint(fmt.Sprint("guest", n), 1))
				registration, err := otelmetric.Register(p, stable, guest)
				if err != nil {
					t.Errorf("Register = %v", err)
					return
				}
				if k%2 == 0 {
					registration.Remove(guest)
					err = registration.Add(guest)
				}
				if unregister := registration.Unregister(); err != nil || unregister != nil {
					t.Errorf("Add = %v, Unregister = %v", err, unregister)
				}
			}
		})
	}
	for range 200 {
		values := collect(t, r)
		require.Equal(t, 1.0, values["weir.breaker.slow_calls{weir.breaker.name=stable}"])
		for series, value := range values {
			require.Equal(t, 1.0, value, series)
		}
	}
	changing.Wait()
	require.Len(t, collect(t, r), 1)
}

type noopMeter = noop.Meter // embedded, it does not take the name of the method

// collectingProvider collects whenever a callback is registered or unregistered.
type collectingProvider struct {
	noop.MeterProvider
	noopMeter
	callbacks map[*collectingRegistration]metric.Callback
	most      int // points in one collection
}

type collectingRegistration struct {
	noop.Registration
	provider *collectingProvider
}

func (p *collectingProvider) Meter(string, ...metric.MeterOption) metric.Meter { return p }

func (p *collectingProvider) RegisterCallback(f metric.Callback, _ ...metric.Observable) (metric.Registration, error) {
	r := &collectingRegistration{provider: p}
	p.callbacks[r] = f
	p.collect()
	return r, nil
}

func (r *collectingRegistration) Unregister() error {
	r.provider.collect()
	delete(r.provider.callbacks, r)
	return nil
}

func (p *collectingProvider) collect() {
	var o observationCounter
	for _, f := range p.callbacks {
		_ = f(context.Background(), &o)
	}
	p.most = max(p.most, o.observed)
}

func TestNoCollectionHasASourceTwice(t *testing.T) {
	p := &collectingProvider{callbacks: map[*collectingRegistration]metric.Callback{}}
	_, err := otelmetric.Register(p, newFakeSource(slowCallsPoint("a", 1)))
	require.NoError(t, err)
	_, err = otelmetric.Register(p, newFakeSource(point{(&stat.Instrument{Name: "shop.x", Kind: stat.Gauge}).Series(), 1}))
	require.NoError(t, err)
	require.Len(t, p.callbacks, 1)
	p.collect()
	require.Equal(t, 1+1+4, p.most, "two sources and the exporter's metrics")
}

// If a name is used again after a collection without it, readers with delta temporality start at
// the total of the new source.
func TestReusedNameStartsAtItsOwnTotal(t *testing.T) {
	r := sdk.NewManualReader(sdk.WithTemporalitySelector(
		func(sdk.InstrumentKind) metricdata.Temporality { return metricdata.DeltaTemporality }))
	old := newFakeSource(slowCallsPoint("a", 100))
	registration, err := otelmetric.Register(sdk.NewMeterProvider(sdk.WithReader(r)), old)
	require.NoError(t, err)
	require.Equal(t, map[string]float64{seriesA: 100}, collect(t, r))
	registration.Remove(old)
	require.Empty(t, collect(t, r))
	require.NoError(t, registration.Add(newFakeSource(slowCallsPoint("a", 5))))
	require.Equal(t, map[string]float64{seriesA: 5}, collect(t, r))
}

// wholeSource is a source that consists of others and cannot be compared.
type wholeSource []stat.Source

func (wholeSource) Observe(func(*stat.Series, float64) bool) {}
func (w wholeSource) Sources() []stat.Source                 { return w }

func TestSourcesOfASourceAreExported(t *testing.T) {
	r := sdk.NewManualReader()
	a := newFakeSource(slowCallsPoint("a", 1))
	whole := wholeSource{a}
	_, err := otelmetric.Register(sdk.NewMeterProvider(sdk.WithReader(r)), whole)
	require.NoError(t, err)
	require.Equal(t, map[string]float64{seriesA: 1}, collect(t, r))
	whole[0] = newFakeSource(slowCallsPoint("b", 2))
	require.Equal(t, map[string]float64{seriesB: 2}, collect(t, r))
}
