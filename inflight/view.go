package inflight

import (
	"errors"
	"strconv"

	"github.com/weir-go/weir/internal/settings"
	"github.com/weir-go/weir/view"
)

// Views yields the view of the limiter for package admin and the live page.
func (l *Limiter) Views(yield func(view.View) bool) { yield(limiterView{l}) }

// limiterView is what package admin and the live page see of a limiter.
type limiterView struct{ l *Limiter }

func (limiterView) Kind() string   { return "inflight" }
func (v limiterView) Name() string { return v.l.Name() }

func (v limiterView) Bound() (calls, now, configured int) {
	v.l.set.Read(func() { configured = v.l.configuredLimit() })
	return v.l.InFlight(), v.l.Limit(), configured
}

func (v limiterView) Settings() []view.Setting {
	n := 0
	version := v.l.set.Read(func() { n = v.l.configuredLimit() })
	return []view.Setting{{Name: settings.MaxConcurrent, Value: strconv.Itoa(n), Version: version}}
}

func (v limiterView) Set(_ string, s ...view.Setting) ([]view.Setting, error) {
	n, err := limitIn(s)
	if err != nil {
		return nil, err
	}
	version, err := v.l.set.Change(func() error { return v.l.replaceLimit(n) })
	return settings.With(version, s), err
}

func (v limiterView) Restore(_ string, set, earlier []view.Setting) bool {
	n, err := limitIn(earlier)
	return err == nil && v.l.set.Restore(set[0].Version, earlier[0].Version, func() { _ = v.l.replaceLimit(n) })
}

// limitIn returns the limit in settings.
func limitIn(s []view.Setting) (n int, err error) {
	err = errors.Join(settings.Known(s, settings.MaxConcurrent), settings.Int(s, settings.MaxConcurrent, &n))
	return n, err
}

// configuredLimit returns Config.Limit, or the default of an adaptive limiter. l.set is locked.
func (l *Limiter) configuredLimit() int {
	if a := l.adaptive.Load(); a != nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		return int(a.adaptation.upper)
	}
	return l.Limit()
}
