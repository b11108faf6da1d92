package inflight

import (
	"github.com/weir-go/weir/internal/adminhook"
)

// Package admin uses limiters through this function.
var _ = func() bool {
	adminhook.OfInFlight = func(source any) (o adminhook.Object, ok bool) {
		s, ok := source.(interface{ adminObject() adminhook.Object })
		if ok {
			o = s.adminObject()
		}
		return o, ok
	}
	return true
}()

func (l *Limiter) adminObject() adminhook.Object {
	return adminhook.Object{
		Kind: "inflight", Name: l.Name(),
		Slots: &adminhook.Slots{InFlight: l.InFlight, Now: l.Limit, Limit: l.set.Setting(
			func() any { return l.configuredLimit() },
			func(v any) { _ = l.replaceLimit(v.(int)) },
		)},
	}
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
