package weirgrpc

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/stat"
)

// Gates says which gate a call goes through, and shows the statistics of all of them. It is
// made by PerMethod, Per, One or Pick, and may serve any number of clients and servers. It is
// safe for concurrent use.
type Gates struct {
	gate  func(context.Context, Call) *weir.Gate
	all   iter.Seq2[string, *weir.Gate]
	shown []stat.Source
}

// maxGateKey is the length to which a method is cut to be the key of a gate: on a server with a
// grpc.UnknownServiceHandler clients choose the methods.
const maxGateKey = 256

// PerMethod gives each method a gate of its own, so that one that fails does not stop the
// others. Of longer names the first 256 bytes count. The name is that of the [weir.Group], whose
// default bounds it has. PerMethod panics with the error of c.Validate if there is one.
func PerMethod(name string, c weir.Config) *Gates {
	return Per(weir.NewGroup[string](name, weir.GroupConfig{Gate: c}), func(_ context.Context, call Call) string {
		if len(call.Method) > maxGateKey {
			return strings.Clone(call.Method[:maxGateKey]) // a part would keep the whole
		}
		return call.Method
	})
}

// Per sends a call through the gate of its key: a service ([ByService]), a tenant, a shard. The key
// function is called for each call and must not block. Per panics if group or key is nil.
func Per[K comparable](group *weir.Group[K], key func(context.Context, Call) K) *Gates {
	if group == nil || key == nil {
		panic(errors.New("weirgrpc: Per needs a group and a key"))
	}
	return &Gates{
		gate: func(ctx context.Context, call Call) *weir.Gate { return group.Get(key(ctx, call)) },
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

// One sends all calls through one gate. It panics if that is nil.
func One(gate *weir.Gate) *Gates {
	if gate == nil {
		panic(errors.New("weirgrpc: One needs a gate"))
	}
	return &Gates{
		gate:  func(context.Context, Call) *weir.Gate { return gate },
		all:   func(yield func(string, *weir.Gate) bool) { yield(gate.Name(), gate) },
		shown: []stat.Source{gate},
	}
}

// Pick sends a call on to the Gates that choose returns for it. If that is nil, the call passes
// unguarded. The Gates that choose picks from are given too, for their statistics. Pick panics if
// choose or one of these is nil.
func Pick(choose func(context.Context, Call) *Gates, from ...*Gates) *Gates {
	if choose == nil || slices.Contains(from, nil) {
		panic(errors.New("weirgrpc: Pick needs a function, and Gates that are not nil"))
	}
	g := &Gates{gate: func(ctx context.Context, call Call) *weir.Gate {
		if chosen := choose(ctx, call); chosen != nil {
			return chosen.gate(ctx, call)
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

// Observe yields the statistics of all gates: see [stat.Source].
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
