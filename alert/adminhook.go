package alert

import (
	"cmp"
	"slices"

	"github.com/weir-go/weir/internal/adminhook"
)

// Package admin uses monitors through this function.
var _ = func() bool {
	adminhook.OfMonitor = func(source any) (o adminhook.Object, ok bool) {
		m, ok := source.(*Monitor)
		if ok {
			o = m.adminObject()
		}
		return o, ok
	}
	return true
}()

func (m *Monitor) adminObject() adminhook.Object {
	return adminhook.Object{
		Kind: "monitor", Name: m.setup.Load().config.Instance,
		Monitor: &adminhook.Monitor{
			Silence: func(s adminhook.Silence) error {
				return m.Silence(Silence{Name: s.Name, Match: s.Match, StartsAt: s.Start, EndsAt: s.End})
			},
			Silences: func() (list []adminhook.Silence) {
				for _, s := range m.Silences() {
					list = append(list, adminhook.Silence{Name: s.Name, Match: s.Match, Start: s.StartsAt, End: s.EndsAt})
				}
				return list
			},
			EndSilence: m.EndSilence,
			Rules: func() (names []string) {
				for _, e := range m.setup.Load().evaluators {
					// not e.rule, which Reconfigure replaces
					names = append(names, e.published.Load().rule)
				}
				return names
			},
			Notifiers: func() (names []string) {
				for _, d := range m.setup.Load().deliverers {
					names = append(names, d.name)
				}
				return names
			},
			Test:   m.Test,
			Alerts: m.activeAlerts,
		},
	}
}

// activeAlerts returns the alerts that are firing, and then those that are pending.
func (m *Monitor) activeAlerts() (list []adminhook.Alert) {
	for _, a := range m.Alerts() {
		if a.State != Resolved {
			list = append(list, adminhook.Alert{
				Rule: a.Rule, Key: a.Key, State: string(a.State), SilencedBy: a.SilencedBy, Labels: a.Labels,
			})
		}
	}
	slices.SortStableFunc(list, func(a, b adminhook.Alert) int { return cmp.Compare(a.State, b.State) })
	return list
}
