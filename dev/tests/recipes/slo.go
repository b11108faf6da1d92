package recipes

import (
	"time"

	"github.com/weir-go/weir/alert"
)

//readme:slo

// WatchSLO returns a monitor of the objective that 99.9 % of the calls succeed.
func WatchSLO(of alert.Counted, to ...alert.Notifier) *alert.Monitor {
	rules := alert.BurnRateRules("checkout", of, 0.999)
	for i := range rules {
		rules[i].MinBad = 10 // at night, one failed call is no incident
		rules[i].Annotations = map[string]string{"runbook": "https://wiki.example/checkout"}
	}
	rules = append(rules, alert.Rule{
		Name:     "checkout burn 1x",
		Value:    alert.BurnRate(of, 0.999, 72*time.Hour, 6*time.Hour),
		When:     alert.Above(1),
		Severity: "ticket",
	})
	return alert.NewMonitor(alert.Config{Notify: to}, rules...)
}

//readme:end
