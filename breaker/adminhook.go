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
		Override: b.adminOverride(),
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
		State: func() string { return string(g.override.currentOverride()) },
		Override: &adminhook.Setting{
			Get: g.overrideValue,
			Set: func(v any, why string) adminhook.Value { return g.setAll(State(v.(string)), overrideReason(v, why)) },
			Restore: func(set, earlier adminhook.Value, why string) bool {
				return g.restoreAll(set.Number, earlier, overrideReason(earlier.V, why))
			},
		},
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

// overrideReason returns the reason of a change to the override v.
func overrideReason(v any, why string) string {
	if v == "" {
		return "released " + why
	}
	return "forced " + why
}

// adminOverride returns the override of the breaker itself, without that of its group.
func (b *Breaker) adminOverride() *adminhook.Setting {
	return &adminhook.Setting{
		Get: func() adminhook.Value {
			b := b.forReads()
			number, s := b.overrideNumber(), b.overrideWithoutRefuse()
			b.ownUnder(number, func(_, own State) State {
				s = own
				return own
			})
			return adminhook.Value{V: string(s), Number: number}
		},
		Set: func(v any, why string) adminhook.Value {
			return adminhook.Value{V: v, Number: b.setOverride(time.Now(), State(v.(string)), overrideReason(v, why))}
		},
		Restore: func(set, earlier adminhook.Value, why string) (done bool) {
			b.changeUnderLock(time.Now(), func(b *Breaker, p *phase, at time.Duration) {
				if done = b.overrideSet == set.Number; !done {
					return
				}
				b.overrideSet = earlier.Number
				s := State(earlier.V.(string))
				b.ownUnder(earlier.Number, func(over, _ State) State {
					own := s
					s = over
					return own
				})
				b.changeOverride(p, s, at, overrideReason(string(s), why))
			})
			return done
		},
	}
}
