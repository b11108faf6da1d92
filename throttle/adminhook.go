package throttle

import (
	"context"

	"github.com/weir-go/weir/internal/adminhook"
)

// Package admin uses throttles through this function.
var _ = func() bool {
	adminhook.OfThrottle = func(source any) (o adminhook.Object, ok bool) {
		t, ok := source.(*Throttle)
		if ok {
			o = t.adminObject()
		}
		return o, ok
	}
	return true
}()

func (t *Throttle) adminObject() adminhook.Object {
	return adminhook.Object{
		Kind: "throttle", Name: t.name,
		Reset: func(context.Context, string) error {
			t.reset()
			return nil
		},
		Throttle: &adminhook.Throttle{
			Get: func() (k, maxRefusal float64) {
				c := t.setting.Load().config
				return c.K, c.MaxRefusal
			},
			Set: func(k, maxRefusal float64) { t.change(k, maxRefusal) },
			Check: func(k, maxRefusal float64) error {
				return Config{K: k, MaxRefusal: maxRefusal}.Validate()
			},
		},
	}
}

// reset begins an empty window, so that no call is refused until MinCalls calls have come.
func (t *Throttle) reset() {
	t.changing.Lock()
	defer t.changing.Unlock()
	s := t.setting.Load()
	t.setting.Store(s.withWindow(s.config, t.clock.Now()))
}

// change replaces two fields of the Config, which are valid.
func (t *Throttle) change(k, maxRefusal float64) {
	t.changing.Lock()
	defer t.changing.Unlock()
	s := t.setting.Load()
	c := s.config
	c.K, c.MaxRefusal = k, maxRefusal
	t.setting.Store(s.withConfig(c, t.clock.Now()))
}
