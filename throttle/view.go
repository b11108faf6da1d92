package throttle

import (
	"context"
	"errors"

	"github.com/weir-go/weir/internal/settings"
	"github.com/weir-go/weir/stat/view"
)

// Views yields the view of the throttle for package admin and the live page.
func (t *Throttle) Views(yield func(view.View) bool) { yield(throttleView{t}) }

// throttleView is what package admin and the live page see of a throttle.
type throttleView struct{ t *Throttle }

func (throttleView) Kind() string   { return "throttle" }
func (v throttleView) Name() string { return v.t.name }

// Reset begins an empty window, so that no call is refused until MinCalls calls have come.
func (v throttleView) Reset(context.Context, string) error {
	t := v.t
	t.changing.Lock()
	defer t.changing.Unlock()
	s := t.setting.Load()
	t.setting.Store(s.withWindow(s.config, t.now()))
	return nil
}

func (v throttleView) Settings() []view.Setting { return v.t.set.Settings(v) }

func (v throttleView) Set(_ string, s ...view.Setting) ([]view.Setting, error) {
	return v.t.set.Set(v, s)
}

func (v throttleView) Restore(_ string, set, earlier []view.Setting) bool {
	return v.t.set.Restore(v, set, earlier)
}

func (v throttleView) ReadSettings() []view.Setting {
	c := v.t.setting.Load().config
	return []view.Setting{{Name: settings.K, Value: settings.Number(c.K)}, {Name: settings.MaxRefusal, Value: settings.Number(c.MaxRefusal)}}
}

func (v throttleView) WriteSettings(s []view.Setting) error {
	var c Config
	err := errors.Join(settings.Float(s, settings.K, &c.K), settings.Float(s, settings.MaxRefusal, &c.MaxRefusal))
	if err == nil {
		err = c.Validate()
	}
	if err == nil {
		c = c.orDefault()
		v.t.change(func(now *Config) { now.K, now.MaxRefusal = c.K, c.MaxRefusal })
	}
	return err
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
