package otelmetric

import (
	"go.opentelemetry.io/otel/metric"

	"github.com/weir-go/weir/stat"
)

// Registration is the sources given to one call of [Register] and added since. It is safe for
// concurrent use. The zero value does not work: use Register.
type Registration struct {
	hub *hub

	// Guarded by the lock of the hub.
	ended   bool
	sources map[stat.Source]bool // after comparableSource
}

// Register exports the sources in every collection of the provider, until they are removed or
// [Registration.Unregister] is called. It reads each source to learn its instruments. If it fails,
// nothing is registered.
//
// Register fails if [read.New] fails with the sources, if another source of the same provider
// yields a different series with the same name and attributes, or if the provider refuses an
// instrument. A source that is given twice, in one call or in several, or is part of another source
// as a breaker is part of its gate, is exported once. Of a source with a method Sources, such as a
// weirconfig.Set, each collection exports the sources that the method returns then: see [read.Set].
//
// Register is safe for concurrent use, and may be called before the global provider is set.
// Providers are distinguished by their addresses: sources registered with the global provider
// before it is set are not compared with those registered with the provider that it is set to.
//
// A slow source delays no other call of Register or of a method of a Registration, and sources may
// call them while they are read. The exception is a call for which the provider waits for the end
// of its collection: one that adds new instruments, or begins the first registration or ends the
// last one.
func Register(provider metric.MeterProvider, sources ...stat.Source) (*Registration, error) {
	r := &Registration{hub: hubOf(provider), sources: map[stat.Source]bool{}}
	if err := r.Add(sources...); err != nil {
		return nil, err
	}
	return r, nil
}

// Add adds sources, which are exported from the next collection. It returns an error and adds none
// of them if [Register] would have failed with them, or after Unregister. Sources that are == to
// one of the registration are ignored. The cost of Add does not depend on the number of sources
// before.
func (r *Registration) Add(sources ...stat.Source) error {
	return r.hub.add(r, comparableSources(sources))
}

// Remove removes the sources of this registration that are == to those given. The next collection
// lacks their series, except for those that another source or registration yields too.
func (r *Registration) Remove(sources ...stat.Source) {
	r.hub.remove(r, comparableSources(sources))
}

// Unregister removes all sources of this registration and ends it. Unregister returns an error of
// the provider if this was the last registration of the provider and the provider fails to remove
// the callback. A second call does nothing.
func (r *Registration) Unregister() error {
	return r.hub.end(r)
}

func comparableSources(sources []stat.Source) []stat.Source {
	list := make([]stat.Source, len(sources))
	for n, s := range sources {
		list[n] = comparableSource(s)
	}
	return list
}
