package throttle

import (
	"context"
	"errors"

	"github.com/weir-go/weir/internal/settings"
	"github.com/weir-go/weir/view"
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

func (v throttleView) Settings() []view.Setting {
	var c Config
	version := v.t.set.Read(func() { c = v.t.setting.Load().config })
	return settingsOf(c.K, c.MaxRefusal, version)
}

func (v throttleView) Set(_ string, s ...view.Setting) ([]view.Setting, error) {
	k, maxRefusal, err := valuesIn(append(v.Settings(), s...))
	if err != nil {
		return nil, err
	}
	version, _ := v.t.set.Change(func() error {
		v.t.change(func(c *Config) { c.K, c.MaxRefusal = k, maxRefusal })
		return nil
	})
	return settingsOf(k, maxRefusal, version), nil
}

func (v throttleView) Restore(_ string, set, earlier []view.Setting) bool {
	k, maxRefusal, err := valuesIn(earlier)
	return err == nil && v.t.set.Restore(set[0].Version, earlier[0].Version, func() {
		v.t.change(func(c *Config) { c.K, c.MaxRefusal = k, maxRefusal })
	})
}

func settingsOf(k, maxRefusal float64, version uint64) []view.Setting {
	return []view.Setting{
		{Name: settings.K, Value: settings.Number(k), Version: version},
		{Name: settings.MaxRefusal, Value: settings.Number(maxRefusal), Version: version},
	}
}

// valuesIn returns the values of settings. The last ones count.
func valuesIn(s []view.Setting) (k, maxRefusal float64, err error) {
	err = errors.Join(settings.Known(s, settings.K, settings.MaxRefusal),
		settings.Float(s, settings.K, &k), settings.Float(s, settings.MaxRefusal, &maxRefusal))
	if err == nil {
		err = Config{K: k, MaxRefusal: maxRefusal}.Validate()
	}
	return k, maxRefusal, err
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
