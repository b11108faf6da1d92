package breaker

import (
	"context"
	"time"

	"github.com/weir-go/weir/internal/adminhook"
	"github.com/weir-go/weir/internal/keytext"
)

// Package admin uses breakers through these functions. Force, Release and Reset take the reason of
// a change, which names the user who made it.
var _ = func() bool {
	adminhook.OfBreaker = func(source any) (o adminhook.Object, ok bool) {
		s, ok := source.(interface{ adminObject() adminhook.Object })
		if ok {
			o = s.adminObject()
		}
		return o, ok
	}
	return true
}()

func (b *Breaker) adminObject() adminhook.Object {
	return adminhook.Object{
		Kind: "breaker", Name: b.name,
		State:    func() string { return string(b.State()) },
		Override: func() string { return string(b.overrideWithoutRefuse()) },
		Force:    func(state, why string) { b.forceFor(time.Now(), State(state), "forced "+why) },
		Release:  func(why string) { b.releaseFor(time.Now(), "released "+why) },
		Reset: func(_ context.Context, why string) error {
			b.resetFor(time.Now(), "reset "+why)
			return nil
		},
		Explain: b.Explain,
		Tripped: b.Tripped,
	}
}

func (g *Group[K]) adminObject() adminhook.Object {
	return adminhook.Object{
		Kind: "breaker_group", Name: g.name,
		State:    func() string { return string(g.override.currentOverride()) },
		Override: func() string { return string(g.override.currentOverride()) },
		Force:    func(state, why string) { g.forceAll(State(state), "forced "+why) },
		Release:  func(why string) { g.releaseAll("released " + why) },
		Reset: func(_ context.Context, why string) error {
			g.resetAll("reset " + why)
			return nil
		},
		Members: func(yield func(string, adminhook.Object) bool) {
			for key, b := range g.All() {
				if !yield(keytext.Label(key), b.adminObject()) {
					return
				}
			}
		},
	}
}
