package limiter

import (
	"context"
	"time"

	"github.com/weir-go/weir/internal/adminhook"
	"github.com/weir-go/weir/internal/keytext"
	"github.com/weir-go/weir/internal/report"
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
	report.Limiters = reportLimiter
	return true
}()

func (b *TokenBucket) adminObject() adminhook.Object {
	return adminhook.Object{
		Kind: "limiter", Name: b.Name(), Hold: b.Hold,
		Limits: b.adminLimits(),
	}
}

func (b *TokenBucket) adminLimits() *adminhook.Setting {
	set := func(v adminhook.Value, condition func(*bucketState) bool) bool {
		l := v.V.(adminhook.Limits)
		return b.setLimitsIf(l.Rate.(Rate), l.Burst, v.Number, condition)
	}
	return &adminhook.Setting{
		Get: func() adminhook.Value {
			b.mu.Lock()
			defer b.mu.Unlock()
			s := b.state.Load()
			return adminhook.Value{V: adminhook.Limits{Rate: s.rate, Burst: s.configuredBurst}, Number: s.set}
		},
		Set: func(v any, _ string) adminhook.Value {
			next := adminhook.Value{V: v, Number: adminhook.NextNumber()}
			set(next, func(*bucketState) bool { return true })
			return next
		},
		Restore: func(now, earlier adminhook.Value, _ string) bool {
			return set(earlier, func(old *bucketState) bool { return old.set == now.Number })
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
		Limits: g.set.Setting(func() any {
			t := g.first.Load()
			return adminhook.Limits{Rate: t.Rate, Burst: t.Burst}
		}, func(v any) {
			l := v.(adminhook.Limits)
			g.setTier(time.Since(g.epoch), 0, Tier{Rate: l.Rate.(Rate), Burst: l.Burst})
		}),
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
