package limiter

import (
	"context"
	"time"

	"github.com/weir-go/weir/internal/adminhook"
	"github.com/weir-go/weir/internal/keytext"
)

// Package admin uses limiters through this function.
var _ = func() bool {
	adminhook.OfLimiter = func(source any) (o adminhook.Object, ok bool) {
		switch s := source.(type) {
		case interface{ adminObject() adminhook.Object }:
			return s.adminObject(), true
		case interface {
			Limiter
			Name() string
		}:
			o = adminhook.Object{Kind: "limiter", Name: s.Name()}
			if h, ok := s.(interface{ Hold(d time.Duration) }); ok {
				o.Hold = h.Hold
			}
			return o, true
		}
		return o, false
	}
	return true
}()

func (b *TokenBucket) adminObject() adminhook.Object {
	return adminhook.Object{
		Kind: "limiter", Name: b.Name(), Hold: b.Hold,
		Limits: &adminhook.Limits{
			Get: func() (rate any, burst int) {
				s := b.state.Load()
				return s.rate, s.configuredBurst
			},
			Set: func(rate any, burst int) { b.setLimits(rate.(Rate), burst) },
		},
	}
}

func (g *Group[K]) adminObject() adminhook.Object {
	return adminhook.Object{
		Kind: "limiter_group", Name: g.Name(), Busiest: func(n int) any { return g.Busiest(n) }, Hold: g.holdAll,
		Reset: func(context.Context, string) error {
			g.forgetAll()
			return nil
		},
		Limits: &adminhook.Limits{
			Get: func() (rate any, burst int) {
				t := g.first.Load()
				return t.Rate, t.Burst
			},
			Set: func(rate any, burst int) { g.setTier(time.Since(g.epoch), 0, Tier{Rate: rate.(Rate), Burst: burst}) },
		},
		Members: func(yield func(string, adminhook.Object) bool) {
			for key := range g.All() {
				if !yield(keytext.Label(key), g.keyObject(key)) {
					return
				}
			}
		},
		Keyed: func(text string) (o adminhook.Object, ok bool) {
			key, ok := any(text).(K)
			return g.keyObject(key), ok
		},
	}
}

func (g *Group[K]) keyObject(key K) adminhook.Object {
	return adminhook.Object{
		Kind: "limiter", Name: g.Name(), Hold: g.Get(key).Hold,
		Reset: func(context.Context, string) error {
			g.Forget(key)
			return nil
		},
	}
}
