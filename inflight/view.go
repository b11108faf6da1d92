package inflight

import (
	"strconv"

	"github.com/weir-go/weir/internal/settings"
	"github.com/weir-go/weir/stat/view"
)

// Views yields the view of the limiter for package admin and the live page.
func (l *Limiter) Views(yield func(view.View) bool) { yield(limiterView{l}) }

// limiterView is what package admin and the live page see of a limiter.
type limiterView struct{ l *Limiter }

func (limiterView) Kind() string   { return "inflight" }
func (v limiterView) Name() string { return v.l.Name() }

func (v limiterView) Bound() (calls, now, configured int) {
	configured, _ = strconv.Atoi(v.Settings()[0].Value)
	return v.l.InFlight(), v.l.Limit(), configured
}

func (v limiterView) Settings() []view.Setting { return v.l.set.Settings(v) }

func (v limiterView) Set(_ string, s ...view.Setting) ([]view.Setting, error) {
	return v.l.set.Set(v, s)
}

func (v limiterView) Restore(_ string, set, earlier []view.Setting) bool {
	return v.l.set.Restore(v, set, earlier)
}

func (v limiterView) ReadSettings() []view.Setting {
	return []view.Setting{{Name: settings.MaxConcurrent, Value: strconv.Itoa(v.l.configuredLimit())}}
}

func (v limiterView) WriteSettings(s []view.Setting) error {
	n := 0
	if err := settings.Int(s, settings.MaxConcurrent, &n); err != nil {
		return err
	}
	return v.l.replaceLimit(n)
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
