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

// hub has what is registered with one provider: one set of sources, and one callback.
type hub struct {
	provider metric.MeterProvider // while the hub lives, no other can have its address

	mu       sync.Mutex
	members  map[*Registration]bool
	users    map[stat.Source]int // how many registrations have each
	observer *observer           // nil while there are no members
}

// observer reads the sources in every collection.
type observer struct {
	hub          *hub // so that it lives as long as the provider calls back
	set          *read.Set[line]
	instruments  map[*stat.Instrument]metric.Float64Observable
	active       atomic.Bool
	registration metric.Registration
}

// hubs finds the hub of a provider. It keeps neither alive.
var hubs = struct {
	mu     sync.Mutex
	byName map[name]weak.Pointer[hub]
}{byName: map[name]weak.Pointer[hub]{}}

// name tells a provider from others.
type name struct {
	kind    reflect.Type
	address uintptr
}

func hubOf(provider metric.MeterProvider) *hub {
	h := &hub{provider: provider, members: map[*Registration]bool{}, users: map[stat.Source]int{}}
	v := reflect.ValueOf(provider)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Type().Elem().Size() == 0 {
		return h // which has no address of its own
	}
	n := name{v.Type(), v.Pointer()}
	hubs.mu.Lock()
	defer hubs.mu.Unlock()
	if there := hubs.byName[n].Value(); there != nil {
		return there
	}
	hubs.byName[n] = weak.Make(h)
	runtime.AddCleanup(h, forget, n)
	return h
}

// forget forgets the hub of a provider that is gone, unless another has its address.
func forget(n name) {
	hubs.mu.Lock()
	defer hubs.mu.Unlock()
	if hubs.byName[n].Value() == nil {
		delete(hubs.byName, n)
	}
}

// add adds sources that the registration does not have.
func (h *hub) add(r *Registration, sources []stat.Source) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.observe(sources); err != nil {
		return err
	}
	h.members[r] = true
	for _, s := range sources {
		h.users[s]++
	}
	return nil
}

// observe has the sources observed too.
func (h *hub) observe(sources []stat.Source) error {
	if h.observer == nil {
		return h.restart(sources)
	}
	err := h.observer.set.Add(sources...)
	if err == nil || !h.observer.lacks(sources) {
		return err
	}
	return h.restart(slices.AppendSeq(sources, maps.Keys(h.users)))
}

// lacks says whether the sources show an instrument that the observer does not know.
func (o *observer) lacks(sources []stat.Source) bool {
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

// restart has another observer in the place of the one that there is, since a callback
// is given its instruments once. A collection at that very moment may show nothing, but
// none shows both.
func (h *hub) restart(sources []stat.Source) error {
	next, old := &observer{hub: h}, h.observer
	var err error
	if next.set, err = read.New(next.line, sources...); err != nil {
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
		_ = old.registration.Unregister() // it shows nothing any more, whether it is called or not
	}
	return nil
}

func (o *observer) line(s *stat.Series) line { return newLine(o.instruments[s.Instrument], s) }

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

// callback never returns an error: a periodic reader would throw away all that was
// collected, from anybody.
func (o *observer) callback(_ context.Context, to metric.Observer) error {
	if o.active.Load() {
		for l, value := range o.set.Observe {
			to.ObserveFloat64(l.instrument, value, l.options...)
		}
	}
	return nil
}

// remove removes sources that a registration had.
func (h *hub) remove(sources []stat.Source) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range sources {
		if h.users[s]--; h.users[s] == 0 {
			delete(h.users, s)
			h.observer.set.Remove(s)
		}
	}
}

// leave ends a registration, and with the last one the callback.
func (h *hub) leave(r *Registration) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.members, r)
	if len(h.members) > 0 {
		return nil
	}
	last := h.observer.registration
	h.observer = nil
	return last.Unregister()
}

// nameless is a source that cannot be found by ==, which it can.
type nameless struct{ stat.Source }

// Histograms passes on what the source has.
func (n *nameless) Histograms(yield func(*stat.Series, stat.Histogram) bool) {
	if h, ok := n.Source.(stat.HistogramSource); ok {
		h.Histograms(yield)
	}
}

// named returns the source, or something in its place that can be found by ==.
func named(s stat.Source) stat.Source {
	if s == nil {
		return nil
	}
	if itself := s; reflect.ValueOf(s).Comparable() && s == itself {
		return s
	}
	return &nameless{s}
}
