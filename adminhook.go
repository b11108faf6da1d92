package weir

import (
	"time"

	"github.com/weir-go/weir/internal/adminhook"
	"github.com/weir-go/weir/internal/keytext"
)

// Package admin uses gates through this function.
var _ = func() bool {
	adminhook.OfGate = func(source any) (o adminhook.Object, ok bool) {
		s, ok := source.(interface{ adminObject() adminhook.Object })
		if ok {
			o = s.adminObject()
		}
		return o, ok
	}
	return true
}()

func (g *Gate) adminObject() adminhook.Object {
	o, _ := adminhook.OfBreaker(g.breaker)
	o.Kind, o.Name, o.Hold = "gate", g.name, g.Hold
	s := g.setup.Load()
	if l, _ := adminhook.OfLimiter(s.limiter); l.Limits != nil {
		o.Limits = l.Limits
	}
	if s.inFlight != nil {
		l, _ := adminhook.OfInFlight(s.inFlight)
		o.Slots = l.Slots
		if g.admissions.shared {
			o.Slots.Set = nil // all keys have the same limit
		}
	}
	return o
}

// holdAll refuses all calls of all keys for d, as [Gate.Hold] does for one key, but does not
// lengthen d by a random share. Calls that wait for a token continue to wait.
func (g *Group[K]) holdAll(d time.Duration) {
	if d <= 0 {
		return
	}
	g.holds.extendAll(int64(time.Since(g.epoch)), d)
	if p := g.parts.Load(); p.buckets != nil {
		l, _ := adminhook.OfLimiter(p.buckets)
		l.Hold(d)
	}
}

func (g *Group[K]) adminObject() adminhook.Object {
	o, _ := adminhook.OfBreaker(g.breakers)
	o.Kind, o.Busiest, o.Hold = "gate_group", func(n int) any { return g.Busiest(n) }, g.holdAll
	o.Members = func(yield func(string, adminhook.Object) bool) {
		for key, gate := range g.All() {
			if !yield(keytext.Label(key), gate.adminObject()) {
				return
			}
		}
	}
	p := g.parts.Load()
	if p.buckets != nil {
		l, _ := adminhook.OfLimiter(p.buckets)
		o.Limits = l.Limits
	}
	if p.withoutRoom != nil {
		o.Slots = &adminhook.Slots{
			InFlight: func() int { return p.inFlight(g).Calls },
			Now:      func() int { return p.inFlight(g).Limit },
			Get:      func() int { return g.parts.Load().config.MaxConcurrent },
			Set:      g.setMaxConcurrent,
		}
	}
	return o
}
