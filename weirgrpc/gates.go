package weirgrpc

import (
	"context"
	"slices"
	"strings"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/stat"
)

// Gates says which gate a call goes through, and shows the figures of all of them. It is
// made by PerMethod, PerService, PerTarget, Per, One or Pick, and may serve any number of
// clients and servers, from any number of goroutines.
type Gates struct {
	gate  func(context.Context, Call) *weir.Gate
	shown []stat.Source
}

// maxKey is the length to which a method or target is cut to be a key: on a server with a
// grpc.UnknownServiceHandler clients choose the methods.
const maxKey = 256

// PerMethod gives each method a gate of its own, so that one that fails does not stop the
// others; of longer names the first 256 bytes count. The name is that of the [weir.Group], whose defaults bound its memory. It panics
// with the error of c.Validate if there is one.
func PerMethod(name string, c weir.Config) *Gates {
	return perString(name, c, func(call Call) string { return call.Method })
}

// PerService gives each service a gate of its own: see [PerMethod].
func PerService(name string, c weir.Config) *Gates { return perString(name, c, Call.Service) }

// PerTarget gives each target a gate of its own, for a Client that serves several
// connections: see [PerMethod]. On a server all calls go through one.
func PerTarget(name string, c weir.Config) *Gates {
	return perString(name, c, func(call Call) string { return call.Target })
}

func perString(name string, c weir.Config, key func(Call) string) *Gates {
	return Per(weir.NewGroup[string](name, weir.GroupConfig{Gate: c}), func(_ context.Context, call Call) string {
		k := key(call)
		if max(len(k), len(call.Method)) > maxKey {
			return strings.Clone(k[:min(len(k), maxKey)]) // a part would keep the whole
		}
		return k
	})
}

// Per sends a call through that gate of the group which belongs to its key: a tenant, a
// shard. The key is asked for at each call and must not block. Per panics if one of them is
// nil.
func Per[K comparable](group *weir.Group[K], key func(context.Context, Call) K) *Gates {
	if group == nil || key == nil {
		panic("weirgrpc: Per needs a group and a key")
	}
	return Pick(func(ctx context.Context, call Call) *weir.Gate { return group.Get(key(ctx, call)) }, group)
}

// One sends all calls through one gate. It panics if that is nil.
func One(gate *weir.Gate) *Gates {
	if gate == nil {
		panic("weirgrpc: One needs a gate")
	}
	return Pick(func(context.Context, Call) *weir.Gate { return gate }, gate)
}

// Pick sends a call through the gate that choose returns for it; nil lets it pass
// unguarded. What choose picks from, gates and groups, is given too, for its figures. Pick
// panics if choose or one of these is nil.
func Pick(choose func(context.Context, Call) *weir.Gate, from ...stat.Source) *Gates {
	if choose == nil || slices.Contains(from, nil) {
		panic("weirgrpc: Pick needs a func, and sources that are not nil")
	}
	return &Gates{gate: choose, shown: from}
}

// Observe yields the figures of all gates: see [stat.Source].
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
