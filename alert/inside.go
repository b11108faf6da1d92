package alert

import (
	"strings"

	"github.com/weir-go/weir/internal/friend"
)

// Inside returns functions of monitors for the other packages of this module. Users cannot name the
// key.
func Inside(friend.Key) inside { return inside{} } //nolint:revive // only its methods are needed

type inside struct{}

// Notifiers returns the states of the notifiers.
func (inside) Notifiers(m *Monitor) (list []*friend.Notifier) {
	for _, d := range m.setup.Load().deliverers {
		stats := d.published.Load()
		list = append(list, &friend.Notifier{Name: d.name, FailingSince: stats.failingSince, LastError: stats.lastError, DroppedAt: stats.droppedAt})
	}
	return list
}

// Rules returns the states of the rules at their latest evaluation, in the order of the config.
func (inside) Rules(m *Monitor) (list []*friend.Rule) {
	s := m.setup.Load()
	rules := make(map[string]*friend.Rule, len(s.evaluators))
	worst := make(map[string]float64, len(s.evaluators))
	for _, e := range s.evaluators {
		stats := e.published.Load() // not e.rule, which Reconfigure replaces
		r := &friend.Rule{
			Name: stats.rule, Severity: stats.severity, Threshold: stats.when.threshold, Below: stats.when.below,
			Unit: unitOf(stats.valueName), NoData: stats.noDataText(),
			Fault: stats.latest.String(), FailingSince: stats.failingSince, Interval: s.config.Interval,
		}
		list, rules[r.Name] = append(list, r), r
	}
	for _, a := range *m.alerts.Load() {
		r := rules[a.Rule]
		if r == nil || a.State != Firing {
			continue
		}
		if a.SilencedBy != "" {
			r.Silenced++
		}
		if r.Since.IsZero() || a.StartsAt.Before(r.Since) {
			r.Since = a.StartsAt
		}
		if a.Key == "" {
			continue
		}
		r.Keys++
		if when := (Condition{below: r.Below}); r.Keys == 1 || when.worse(a.Value, worst[a.Rule]) {
			r.Worst, worst[a.Rule] = a.Key, a.Value
		}
	}
	return list
}

// unitOf returns the unit of a value as metrics write it, or "" if it has none.
func unitOf(valueName string) string {
	switch {
	case strings.HasPrefix(valueName, "latency "):
		return "s"
	case strings.HasPrefix(valueName, "burn rate "):
		return ""
	case strings.Contains(valueName, " rate over "):
		return "ratio"
	}
	return ""
}
