package alert_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/alert"
)

// An alert that fires when more than 5 % of the payments fail.
func Example() {
	payments := weir.New("payments", weir.Config{})
	fired := make(chan alert.Alert)
	monitor := alert.NewMonitor(
		alert.Config{
			Interval: 10 * time.Millisecond, // by default 5s
			Notify: []alert.Notifier{alert.Func("pager", func(_ context.Context, a alert.Alert) error {
				fired <- a
				return nil
			})},
		},
		alert.Rule{
			Name:        "payments fail",
			Value:       alert.FailureRate(payments, 5*time.Minute),
			When:        alert.Above(0.05),
			MinCalls:    20,
			Severity:    "page",
			Annotations: map[string]string{"runbook": "https://runbooks.example/payments"},
		})

	ctx, stop := context.WithCancel(context.Background())
	go monitor.Run(ctx)

	charge := func(context.Context) error { return errors.New("the bank is down") }
	for firing := false; !firing; {
		_ = payments.Run(ctx, charge)
		select {
		case a := <-fired:
			firing = true
			fmt.Println(a.Rule, "is", a.State, "of severity", a.Labels["severity"])
			fmt.Println("see", a.Annotations["runbook"])
		default:
		}
	}
	stop()
	// Output:
	// payments fail is firing of severity page
	// see https://runbooks.example/payments
}
