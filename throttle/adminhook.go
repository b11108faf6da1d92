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
		Throttle: t.adminSetting(),
	}
}

func (t *Throttle) adminSetting() *adminhook.Setting {
	s := t.set.Setting(func() any {
		c := t.setting.Load().config
		return adminhook.Throttle{K: c.K, MaxRefusal: c.MaxRefusal}
	}, func(v any) {
		next := v.(adminhook.Throttle)
		t.change(func(c *Config) { c.K, c.MaxRefusal = next.K, next.MaxRefusal })
	})
	s.Check = func(v any) error {
		next := v.(adminhook.Throttle)
		return Config{K: next.K, MaxRefusal: next.MaxRefusal}.Validate()
	}
	return s
}

// reset begins an empty window, so that no call is refused until MinCalls calls have come.
func (t *Throttle) reset() {
	t.changing.Lock()
	defer t.changing.Unlock()
	s := t.setting.Load()
	t.setting.Store(s.withWindow(s.config, t.now()))
}

// change replaces the Config by the one that edit makes of it, which is valid.
func (t *Throttle) change(edit func(c *Config)) {
	t.changing.Lock()
	defer t.changing.Unlock()
	s := t.setting.Load()
	c := s.config
	edit(&c)
	t.setting.Store(s.withConfig(c, t.now()))
}
