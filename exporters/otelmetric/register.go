package otelmetric

import (
	"errors"
	"maps"
	"sync"

	"go.opentelemetry.io/otel/metric"

	"github.com/weir-go/weir/stat"
)

// Registration is a part of the sources that a provider observes: those given to one
// call of [Register] and added since. It is safe for concurrent use.
type Registration struct {
	hub *hub

	mu    sync.Mutex
	ended bool
	own   map[stat.Source]bool // as the hub knows them
}

// Register has the sources observed in every collection of the provider, until they are
// removed or [Registration.Unregister] is called. It reads them once to learn their
// instruments, and takes note of nothing if it fails.
//
// It fails if [read.New] fails with the sources, if one of them shows a series that
// another source of the same provider has another one for, or if the provider refuses an
// instrument. A source that is given twice, in one call or in several, or is part of
// another as a breaker is of its gate, is fine and exported once.
//
// Register may be called at any time and from several goroutines, with a provider
// that is to be set up later too. Providers are told apart by their addresses: what is
// registered with the global provider before it is set up is not compared with what is
// registered with the one that it is set up with.
func Register(provider metric.MeterProvider, sources ...stat.Source) (*Registration, error) {
	r := &Registration{hub: hubOf(provider), own: map[stat.Source]bool{}}
	if err := r.Add(sources...); err != nil {
		return nil, err
	}
	return r, nil
}

// Add adds sources, which the next collection shows. What it costs does not depend on
// how many there are already. It adds none of them and returns an error where [Register]
// would have failed, and after Unregister. Sources that are there already, found by ==,
// change nothing.
func (r *Registration) Add(sources ...stat.Source) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return errors.New("otelmetric: the registration has ended")
	}
	more := make([]stat.Source, 0, len(sources))
	seen := make(map[stat.Source]bool, len(sources))
	for _, s := range sources {
		if s = named(s); !r.own[s] && !seen[s] {
			more, seen[s] = append(more, s), true
		}
	}
	if err := r.hub.add(r, more); err != nil {
		return err
	}
	maps.Copy(r.own, seen)
	return nil
}

// Remove removes sources of this registration, found by ==. Their series are gone from
// the next collection, save those that another source or registration shows too.
func (r *Registration) Remove(sources ...stat.Source) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var gone []stat.Source
	for _, s := range sources {
		if s = named(s); r.own[s] {
			delete(r.own, s)
			gone = append(gone, s)
		}
	}
	r.hub.remove(gone)
}

// Unregister removes all sources of this registration and ends it. The error is the
// provider's, from the end of its last registration; a second call does nothing.
func (r *Registration) Unregister() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return nil
	}
	r.ended = true
	gone := make([]stat.Source, 0, len(r.own))
	for s := range r.own {
		gone = append(gone, s)
	}
	r.own = nil
	r.hub.remove(gone)
	return r.hub.leave(r)
}
