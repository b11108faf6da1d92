package weirhttp

import (
	"net/http"
	"slices"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/stat"
)

// Gates says which gate a request goes through, and shows the figures of all of them.
// It is made by PerHost, Per, One or Pick, and may serve any number of transports.
type Gates struct {
	gate  func(*http.Request) *weir.Gate
	shown []stat.Source
}

// PerHost gives each host a gate of its own, in a [weir.Group] with the default bounds. The name
// stands in errors and metrics, so two clients of one program have different ones. For other bounds,
// and to reach the gates of single hosts, use Per with a group of your own and [ByHost]. PerHost panics
// with the error of c.Validate if there is one.
func PerHost(name string, c weir.Config) *Gates {
	return Per(weir.NewGroup[string](name, weir.GroupConfig{Gate: c}), ByHost)
}

// Per sends a request through that gate of the group which belongs to its key: a tenant, a
// host and method, a shard. The key is asked for at each request and must not block.
// Per panics if one of them is nil.
func Per[K comparable](group *weir.Group[K], key func(*http.Request) K) *Gates {
	if group == nil || key == nil {
		panic("weirhttp: Per needs a group and a key")
	}
	return Pick(func(req *http.Request) *weir.Gate { return group.Get(key(req)) }, group)
}

// One sends all requests through one gate. It panics if that is nil.
func One(gate *weir.Gate) *Gates {
	if gate == nil {
		panic("weirhttp: One needs a gate")
	}
	return Pick(func(*http.Request) *weir.Gate { return gate }, gate)
}

// Pick sends a request through the gate that choose returns for it; nil lets it pass
// unguarded. What choose picks from, gates and groups, is given too, for its figures. Pick
// panics if choose or one of these is nil.
func Pick(choose func(*http.Request) *weir.Gate, from ...stat.Source) *Gates {
	if choose == nil || slices.Contains(from, nil) {
		panic("weirhttp: Pick needs a func, and sources that are not nil")
	}
	return &Gates{gate: choose, shown: from}
}

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
