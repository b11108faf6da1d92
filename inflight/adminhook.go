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
		Slots: &adminhook.Slots{InFlight: l.InFlight, Now: l.Limit, Get: l.configuredLimit, Set: l.SetLimit},
	}
}

// configuredLimit returns Config.Limit, or the default of an adaptive limiter.
func (l *Limiter) configuredLimit() int {
	l.changing.Lock()
	defer l.changing.Unlock()
	if a := l.adaptive.Load(); a != nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		return int(a.adaptation.upper)
	}
	return l.Limit()
}
