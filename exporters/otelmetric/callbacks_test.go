package otelmetric_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdk "go.opentelemetry.io/otel/sdk/metric"

	"github.com/weir-go/weir/exporters/otelmetric"
	"github.com/weir-go/weir/stat"
)

// callingSource calls a function when it is read.
type callingSource struct {
	*fakeSource
	read func()
}

func (s *callingSource) Observe(yield func(*stat.Series, float64) bool) {
	s.read()
	s.fakeSource.Observe(yield)
}

// queuePoint returns a point of an instrument that is not weir's.
func queuePoint(name string) point {
	return point{(&stat.Instrument{Name: name, Kind: stat.UpDown}).Series(), 1}
}

// A source calls everything when it is first read by Register and Add, with and without new
// instruments, and what does not wait for the end of the collection when it is collected.
func TestSourcesMayCallTheRegistration(t *testing.T) {
	r := sdk.NewManualReader()
	p := sdk.NewMeterProvider(sdk.WithReader(r))
	var first *otelmetric.Registration
	active, nested, seen := "", false, map[string]int{}
	call := func() {
		if nested {
			return
		}
		nested = true
		defer func() { nested = false }()
		seen[active]++
		more, other := newFakeSource(slowCallsPoint("more", 1)), newFakeSource(slowCallsPoint("other", 1))
		if first != nil {
			require.NoError(t, first.Add(more), active)
			first.Remove(more)
		}
		if active == "Collect" {
			second, err := otelmetric.Register(p, more, other)
			require.NoError(t, err)
			require.NoError(t, second.Unregister())
			return
		}
		third, err := otelmetric.Register(p, other, newFakeSource(queuePoint("shop."+active)))
		require.NoError(t, err, active)
		require.NoError(t, third.Unregister(), active)
	}
	active = "Register"
	var err error
	a := &callingSource{newFakeSource(slowCallsPoint("a", 1)), call}
	first, err = otelmetric.Register(p, a)
	require.NoError(t, err)
	active = "Add"
	require.NoError(t, first.Add(&callingSource{newFakeSource(slowCallsPoint("b", 2)), call}))
	active = "AddInstrument"
	require.NoError(t, first.Add(&callingSource{newFakeSource(queuePoint("shop.late")), call}))
	active = "Collect"
	require.Equal(t, map[string]float64{seriesA: 1, seriesB: 2, "shop.late": 1}, collect(t, r))
	active = "Unregister"
	require.NoError(t, first.Unregister())
	require.Empty(t, metrics(t, r))
	for _, where := range []string{"Register", "Add", "AddInstrument", "Collect"} {
		require.Positive(t, seen[where], where)
	}
}

// Sources block in Register and Add, with known and new instruments. All other calls go on.
func TestASlowSourceDelaysNoOtherRegistration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := sdk.NewManualReader()
		p := sdk.NewMeterProvider(sdk.WithReader(r))
		wait, errs := make(chan struct{}), make(chan error, 4)
		slow := func(points ...point) stat.Source { return &callingSource{newFakeSource(points...), func() { <-wait }} }
		register := func(s ...stat.Source) {
			go func() {
				_, err := otelmetric.Register(p, s...)
				errs <- err
			}()
			synctest.Wait()
		}
		register(slow(slowCallsPoint("first", 1)))
		a, b := newFakeSource(slowCallsPoint("a", 1)), newFakeSource(slowCallsPoint("b", 2))
		first, err := otelmetric.Register(p, a, b)
		require.NoError(t, err)
		register(slow(slowCallsPoint("known", 1)), a)
		register(slow(queuePoint("shop.slow")), b)
		go func() { errs <- first.Add(slow(slowCallsPoint("added", 1))) }()
		synctest.Wait()

		second, err := otelmetric.Register(p, newFakeSource(queuePoint("shop.quick")))
		require.NoError(t, err)
		first.Remove(b)
		require.Equal(t, map[string]float64{seriesA: 1, "shop.quick": 1}, collect(t, r))
		require.NoError(t, second.Unregister())
		require.NoError(t, first.Unregister())
		require.Empty(t, metrics(t, r))

		close(wait)
		failed := 0
		for range 4 {
			if err := <-errs; err != nil {
				require.EqualError(t, err, "otelmetric: the registration has ended")
				failed++
			}
		}
		require.Equal(t, 1, failed)
		require.Equal(t, map[string]float64{
			seriesA: 1, seriesB: 2, "shop.slow": 1,
			"weir.breaker.slow_calls{weir.breaker.name=first}": 1, "weir.breaker.slow_calls{weir.breaker.name=known}": 1,
		}, collect(t, r))
	})
}

// waitingProvider begins a collection when a callback is registered. The collection goes on when a
// callback is removed, which waits for its end.
type waitingProvider struct {
	noop.MeterProvider
	noopMeter
	callbacks []metric.Callback
	counted   observationCounter
}

func (p *waitingProvider) Meter(string, ...metric.MeterOption) metric.Meter { return p }

func (p *waitingProvider) RegisterCallback(f metric.Callback, _ ...metric.Observable) (metric.Registration, error) {
	p.callbacks = append(p.callbacks, f)
	_ = p.callbacks[0](context.Background(), &p.counted)
	return &waitingRegistration{provider: p}, nil
}

type waitingRegistration struct {
	noop.Registration
	provider *waitingProvider
}

func (r *waitingRegistration) Unregister() error {
	for _, f := range r.provider.callbacks[1:] {
		_ = f(context.Background(), &r.provider.counted)
	}
	return nil
}

func TestACollectionUnderWayHasNoSourceTwice(t *testing.T) {
	p := &waitingProvider{}
	_, err := otelmetric.Register(p, newFakeSource(slowCallsPoint("a", 1)))
	require.NoError(t, err)
	_, err = otelmetric.Register(p, newFakeSource(queuePoint("shop.x")))
	require.NoError(t, err)
	require.Equal(t, 1+4, p.counted.observed, "one source and the exporter's metrics")
}
