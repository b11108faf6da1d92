package otelmetric

import (
	"context"
	"errors"
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

	mu            sync.Mutex // never held while a source is read or the provider is called
	registrations map[*Registration]bool
	uses          map[stat.Source]int // the number of registrations with the source
	observer      *observer           // nil without registrations
	changes       int                 // of uses and observer
}

// observer reads the sources at every collection.
type observer struct {
	hub          *hub // keeps the hub alive while the provider has the callback
	set          *read.Set[series]
	instruments  map[*stat.Instrument]metric.Float64Observable
	active       atomic.Bool
	registration metric.Registration
	replaces     *observer     // the observer before it, until it is in effect
	given        []stat.Source // what the set was given until then
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

var errEnded = errors.New("otelmetric: the registration has ended")

// add adds sources to a registration. It reads them and calls the provider without the lock. If
// there was a change meanwhile, it goes on with what is missing after that change.
func (h *hub) add(r *Registration, sources []stat.Source) error {
	var next *observer // not in effect
	for {
		changes, now, err := h.stateFor(r)
		if next != nil && next.replaces != now {
			next.discard()
			next = nil
		}
		if err == nil {
			next, err = h.observe(now, next, sources)
		}
		if err == nil {
			err = h.commit(r, sources, next, changes)
		}
		switch {
		case errors.Is(err, errChanged):
			continue
		case err == nil && next != nil:
			h.start(next)
		case err != nil:
			next.discard()
			h.removeUnused(sources)
		}
		return err
	}
}

// stateFor returns what add goes by.
func (h *hub) stateFor(r *Registration) (changes int, now *observer, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r.ended {
		err = errEnded
	}
	return h.changes, h.observer, err
}

// observe gives the sources to the observer that is in effect. If that one lacks instruments, it
// gives them and those of all registrations to the next one, which it returns.
func (h *hub) observe(now, next *observer, sources []stat.Source) (*observer, error) {
	if next == nil && now != nil {
		err := now.set.Add(sources...)
		if err == nil || !now.lacksInstrumentsOf(sources) {
			return nil, err
		}
	}
	h.mu.Lock()
	all := slices.AppendSeq(slices.Clone(sources), maps.Keys(h.uses))
	h.mu.Unlock()
	if next == nil {
		return h.newObserver(now, all)
	}
	next.given = append(next.given, all...)
	return next, next.set.Add(all...)
}

// errChanged says that there was a change meanwhile.
var errChanged = errors.New("otelmetric: changed")

// commit adds the sources to the registration and sets the next observer, if there is one.
func (h *hub) commit(r *Registration, sources []stat.Source, next *observer, changes int) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.changes != changes {
		return errChanged
	}
	h.changes++
	h.registrations[r] = true
	for _, s := range sources {
		if !r.sources[s] {
			r.sources[s] = true
			h.uses[s]++
		}
	}
	if next == nil {
		return nil
	}
	if h.observer != nil {
		h.observer.active.Store(false)
	}
	h.observer = next
	for _, s := range next.given {
		if h.uses[s] == 0 {
			next.set.Remove(s)
		}
	}
	return nil
}

// start activates an observer that commit has set. No collection exports the sources twice: the old
// observer is inactive, and no collection that it took part in goes on after Unregister. A
// collection at that moment may export nothing.
func (h *hub) start(next *observer) {
	next.replaces.discard()
	next.replaces, next.given = nil, nil
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.observer == next {
		next.active.Store(true)
	}
}

// removeUnused removes sources that the set got before an error. If another call of add is about to
// commit them, it gives them to the set again.
func (h *hub) removeUnused(sources []stat.Source) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.changes++
	for _, s := range sources {
		if h.observer != nil && h.uses[s] == 0 {
			h.observer.set.Remove(s)
		}
	}
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

// newObserver returns an inactive observer of the sources. It has its own callback, because a
// callback gets its instruments only once.
func (h *hub) newObserver(replaces *observer, sources []stat.Source) (*observer, error) {
	o := &observer{hub: h, replaces: replaces, given: sources}
	var err error
	if o.set, err = read.New(o.newSeries, sources...); err != nil {
		return nil, err
	}
	if err := o.register(h.provider); err != nil {
		return nil, fmt.Errorf("otelmetric: %w", err)
	}
	return o, nil
}

// discard removes the callback of an inactive observer, which exports nothing even if that fails.
func (o *observer) discard() {
	if o != nil {
		_ = o.registration.Unregister()
	}
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
func (h *hub) remove(r *Registration, sources []stat.Source) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range sources {
		if r.sources[s] {
			h.removeLocked(r, s)
		}
	}
}

func (h *hub) removeLocked(r *Registration, s stat.Source) {
	h.changes++
	delete(r.sources, s)
	if h.uses[s]--; h.uses[s] == 0 {
		delete(h.uses, s)
		h.observer.set.Remove(s)
	}
}

// end ends a registration. It removes the callback after the last one.
func (h *hub) end(r *Registration) error {
	last := h.endLocked(r)
	if last == nil {
		return nil
	}
	return last.registration.Unregister()
}

// endLocked ends a registration and returns the observer if this was the last one.
func (h *hub) endLocked(r *Registration) (last *observer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r.ended {
		return nil
	}
	r.ended = true
	for s := range r.sources {
		h.removeLocked(r, s)
	}
	delete(h.registrations, r)
	h.changes++
	if len(h.registrations) > 0 {
		return nil
	}
	last, h.observer = h.observer, nil
	last.active.Store(false)
	return last
}

// wrappedSource makes a source comparable if its type is not comparable.
type wrappedSource struct{ stat.Source }

// Histograms yields the histograms of the source, if it has any.
func (n *wrappedSource) Histograms(yield func(*stat.Series, stat.Histogram) bool) {
	if h, ok := n.Source.(stat.HistogramSource); ok {
		h.Histograms(yield)
	}
}

// Sources returns the sources that the source consists of, if it consists of others.
func (n *wrappedSource) Sources() []stat.Source {
	if whole, ok := n.Source.(interface{ Sources() []stat.Source }); ok {
		return whole.Sources()
	}
	return nil
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
