package weirhttp

import (
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/stat"
)

// Gates says which gate a request goes through, and shows the statistics of all of them. It is made by
// PerHost, Per, One or Pick, and may serve any number of transports and guards. It is safe for
// concurrent use.
type Gates struct {
	gate  func(*http.Request) *weir.Gate
	all   iter.Seq2[string, *weir.Gate]
	shown []stat.Source
}

// PerHost gives each host a gate of its own, in a [weir.Group] with the default bounds. The name
// stands in errors and metrics, so two clients of one program have different ones. For other bounds
// use Per with a group of your own and [ByHost]. PerHost panics with the error of c.Validate if there
// is one.
func PerHost(name string, c weir.Config) *Gates {
	return Per(weir.NewGroup[string](name, weir.GroupConfig{Gate: c}), ByHost)
}

// Per sends a request through the gate of its key: a host, a route, a tenant, a shard. The key function
// is called for each request and must not block. Per panics if group or key is nil.
func Per[K comparable](group *weir.Group[K], key func(*http.Request) K) *Gates {
	if group == nil || key == nil {
		panic(errors.New("weirhttp: Per needs a group and a key"))
	}
	return &Gates{
		gate: func(req *http.Request) *weir.Gate { return group.Get(key(req)) },
		all: func(yield func(string, *weir.Gate) bool) {
			for key, gate := range group.All() {
				if !yield(fmt.Sprint(key), gate) {
					return
				}
			}
		},
		shown: []stat.Source{group},
	}
}

// One sends all requests through one gate. It panics if that is nil.
func One(gate *weir.Gate) *Gates {
	if gate == nil {
		panic(errors.New("weirhttp: One needs a gate"))
	}
	return &Gates{
		gate:  func(*http.Request) *weir.Gate { return gate },
		all:   func(yield func(string, *weir.Gate) bool) { yield(gate.Name(), gate) },
		shown: []stat.Source{gate},
	}
}

// Pick sends a request on to the Gates that choose returns for it. If that is nil, the request passes
// unguarded. The Gates that choose picks from are given too, for their statistics. Pick panics if
// choose or one of these is nil.
func Pick(choose func(*http.Request) *Gates, from ...*Gates) *Gates {
	if choose == nil || slices.Contains(from, nil) {
		panic(errors.New("weirhttp: Pick needs a function, and Gates that are not nil"))
	}
	g := &Gates{gate: func(req *http.Request) *weir.Gate {
		if chosen := choose(req); chosen != nil {
			return chosen.gate(req)
		}
		return nil
	}}
	g.all = func(yield func(string, *weir.Gate) bool) {
		for _, f := range from {
			for key, gate := range f.all {
				if !yield(key, gate) {
					return
				}
			}
		}
	}
	for _, f := range from {
		g.shown = append(g.shown, f.shown...)
	}
	return g
}

// All yields the gates with their keys, as fmt.Sprint writes them, in no particular order. The key of
// a gate that stands alone is its name.
func (g *Gates) All() iter.Seq2[string, *weir.Gate] { return g.all }

// Observe yields the figures of all gates.
func (g *Gates) Observe(yield func(*stat.Series, float64) bool) {
	for _, source := range g.shown {
		for s, v := range source.Observe {
			if !yield(s, v) {
				return
			}
		}
	}
}

// Histograms yields the distributions of all gates.
func (g *Gates) Histograms(yield func(*stat.Series, stat.Histogram) bool) {
	for _, source := range g.shown {
		source, ok := source.(stat.HistogramSource)
		if !ok {
			continue
		}
		for s, h := range source.Histograms {
			if !yield(s, h) {
				return
			}
		}
	}
}
