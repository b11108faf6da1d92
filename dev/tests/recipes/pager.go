package recipes

import (
	"net/http"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/alert/notify"
)

//readme:pager

// WatchPayments returns the monitor of a gate. Start its Run in a goroutine.
func WatchPayments(gate *weir.Gate, to ...alert.Notifier) *alert.Monitor {
	return alert.NewMonitor(alert.Config{Notify: to}, alert.Rule{
		Name:     "payments fail",
		Value:    alert.FailureRate(gate, 5*time.Minute),
		When:     alert.Above(0.05),
		MinCalls: 20,
		For:      30 * time.Second,
		Severity: "page",
	})
}

//readme:end

//readme:receivers

// Receivers returns notifiers for Slack and Alertmanager.
func Receivers(slack, alertmanager notify.Secret, transport http.RoundTripper) []alert.Notifier {
	return []alert.Notifier{
		notify.NewSlack(notify.Config{URL: slack, Transport: transport}),
		notify.NewAlertmanager(notify.Config{URL: alertmanager, Transport: transport}),
	}
}

//readme:end
