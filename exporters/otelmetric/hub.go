package otelmetric

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"weak"

	"go.opentelemetry.io/otel/metric"

	"github.com/weir-go/weir/exporters/otelmetric/internal/scope"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/stat/read"
)

// hub joins the registrations of one provider: they share one set of sources and one callback.
type hub struct {
	provider metric.MeterProvider // keeps its address from being reused while the hub is in use

	mu            sync.Mutex
	registrations map[*Registration]bool
	uses          map[stat.Source]int // the number of registrations with the source
	observer      *observer           // nil without registrations
}

// observer reads the sources at every collection.
type observer struct {
	hub          *hub // keeps the hub alive while the provider has the callback
	set          *read.Set[series]
	instruments  map[*stat.Instrument]metric.Float64Observable
	active       atomic.Bool
	registration metric.Registration
}

// hubs has the hub of each provider. It keeps neither of them alive.
var hubs = struct {
	mu    sync.Mutex
	byKey map[providerKey]weak.Pointer[hub]
}{byKey: map[providerKey]weak.Pointer[hub]{}}

// providerKey identifies a provider.
type providerKey struct {
	kind    reflect.Type
	address uintptr
}

func hubOf(provider metric.MeterProvider) *hub {
	h := &hub{provider: provider, registrations: map[*Registration]bool{}, uses: map[stat.Source]int{}}
	v := reflect.ValueOf(provider)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Type().Elem().Size() == 0 {
		return h // it has no separate address
	}
	n := providerKey{v.Type(), v.Pointer()}
	hubs.mu.Lock()
	defer hubs.mu.Unlock()
	if there := hubs.byKey[n].Value(); there != nil {
		return there
	}
	hubs.byKey[n] = weak.Make(h)
	runtime.AddCleanup(h, forgetHub, n)
	return h
}

// forgetHub removes a dead hub, unless a new one has its key.
func forgetHub(n providerKey) {
	hubs.mu.Lock()
	defer hubs.mu.Unlock()
	if hubs.byKey[n].Value() == nil {
		delete(hubs.byKey, n)
	}
}

// add adds sources that are new to the registration.
func (h *hub) add(r *Registration, sources []stat.Source) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.observe(sources); err != nil {
		return err
	}
	h.registrations[r] = true
	for _, s := range sources {
		h.uses[s]++
	}
	return nil
}

// observe starts to observe the sources too.
func (h *hub) observe(sources []stat.Source) error {
	if h.observer == nil {
		return h.restart(sources)
	}
	err := h.observer.set.Add(sources...)
	if err == nil || !h.observer.lacksInstrumentsOf(sources) {
		return err
	}
	return h.restart(slices.AppendSeq(sources, maps.Keys(h.uses)))
}

// lacksInstrumentsOf reports whether the sources have an instrument that the observer does not
// know.
func (o *observer) lacksInstrumentsOf(sources []stat.Source) bool {
	set, err := read.New(func(*stat.Series) struct{} { return struct{}{} }, sources...)
	if err != nil {
		return false
	}
	known := map[string]bool{}
	for _, i := range o.set.Instruments() {
		known[i.Name] = true
	}
	return slices.ContainsFunc(set.Instruments(), func(i *stat.Instrument) bool { return !known[i.Name] })
}

// restart replaces the observer, because a callback gets its instruments only once. A collection at
// that moment may export nothing, but no collection exports the sources twice.
func (h *hub) restart(sources []stat.Source) error {
	next, old := &observer{hub: h}, h.observer
	var err error
	if next.set, err = read.New(next.newSeries, sources...); err != nil {
		return err
	}
	if old != nil {
		old.active.Store(false)
	}
	if err := next.register(h.provider); err != nil {
		if old != nil {
			old.active.Store(true)
		}
		return fmt.Errorf("otelmetric: %w", err)
	}
	next.active.Store(true)
	h.observer = next
	if old != nil {
		// an inactive observer exports nothing, even if this fails
		_ = old.registration.Unregister()
	}
	return nil
}

func (o *observer) newSeries(s *stat.Series) series { return newSeries(o.instruments[s.Instrument], s) }

func (o *observer) register(provider metric.MeterProvider) error {
	meter := provider.Meter(scope.Name, metric.WithInstrumentationVersion(scope.Version()))
	instruments, all, err := newInstruments(meter, o.set.Instruments())
	if err != nil {
		return err
	}
	o.instruments = instruments
	o.registration, err = meter.RegisterCallback(o.callback, all...)
	return err
}

// callback never returns an error, because a periodic reader would then discard the whole
// collection.
func (o *observer) callback(_ context.Context, to metric.Observer) error {
	if o.active.Load() {
		for l, value := range o.set.Observe {
			to.ObserveFloat64(l.instrument, value, l.options...)
		}
	}
	return nil
}

// remove removes sources of a registration.
func (h *hub) remove(sources []stat.Source) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range sources {
		if h.uses[s]--; h.uses[s] == 0 {
			delete(h.uses, s)
			h.observer.set.Remove(s)
		}
	}
}

// endRegistration ends a registration. It removes the callback after the last one.
func (h *hub) endRegistration(r *Registration) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.registrations, r)
	if len(h.registrations) > 0 {
		return nil
	}
	last := h.observer.registration
	h.observer = nil
	return last.Unregister()
}

// wrappedSource makes a source comparable if its type is not comparable.
type wrappedSource struct{ stat.Source }

// Histograms yields the histograms of the source, if it has any.
func (n *wrappedSource) Histograms(yield func(*stat.Series, stat.Histogram) bool) {
	if h, ok := n.Source.(stat.HistogramSource); ok {
		h.Histograms(yield)
	}
}

// comparableSource returns the source, or a wrapper if its type cannot be compared with ==.
func comparableSource(s stat.Source) stat.Source {
	if s == nil {
		return nil
	}
	if itself := s; reflect.ValueOf(s).Comparable() && s == itself {
		return s
	}
	return &wrappedSource{s}
}
