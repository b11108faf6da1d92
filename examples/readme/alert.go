package readme

import (
	"context"
	"time"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/alert/notify"
)

//readme:rule
var paymentsFail = alert.Rule{
	Name: "payments fail", Value: alert.FailureRate(payments, 5*time.Minute), // with refused calls
	When: alert.Above(0.05), MinCalls: 20, For: 30 * time.Second,
}

//readme:end

//readme:watch
func watch(ctx context.Context, pager notify.Secret) *alert.Monitor {
	hook := notify.NewWebhook(notify.Config{URL: pager})
	monitor := alert.NewMonitor(alert.Config{Notify: []alert.Notifier{hook}}, paymentsFail)
	go monitor.Run(ctx)
	return monitor
}

//readme:end
