package alert

import (
	"strings"

	"github.com/weir-go/weir/internal/report"
)

// The live page reads monitors through this function.
var _ = func() bool {
	report.Alerts = func(source any, rule func(*report.Rule), notifier func(*report.Notifier)) bool {
		m, ok := source.(*Monitor)
		if ok {
			m.report(rule)
			for _, d := range m.setup.Load().deliverers {
				stats := d.published.Load()
				notifier(&report.Notifier{Name: d.name, FailingSince: stats.failingSince, LastError: stats.lastError, DroppedAt: stats.droppedAt})
			}
		}
		return ok
	}
	return true
}()

// report yields the state of each rule at its latest evaluation.
func (m *Monitor) report(yield func(*report.Rule)) {
	s := m.setup.Load()
	evaluators := s.evaluators
	rules := make(map[string]*report.Rule, len(evaluators))
	worst := make(map[string]float64, len(evaluators))
	for _, e := range evaluators {
		stats := e.published.Load() // not e.rule, which Reconfigure replaces
		rules[stats.rule] = &report.Rule{
			Name: stats.rule, Severity: stats.severity, Threshold: stats.when.threshold, Below: stats.when.below,
			Unit: unitOf(stats.valueName), NoData: stats.noDataText(),
			Fault: stats.latest.String(), FailingSince: stats.failingSince, Interval: s.config.Interval,
		}
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
	for _, r := range rules {
		yield(r)
	}
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
