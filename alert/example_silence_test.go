package alert_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/breaker"
)

// A silence holds back the alerts about connection pools during a deployment.
func ExampleSilence() {
	monitor := alert.NewMonitor(alert.Config{Notify: []alert.Notifier{userNotifier{}}, Instance: "web-1"},
		alert.Rule{Name: "pool full", Value: alert.Gauge(func() float64 { return 1 }), When: alert.Above(0.9)})
	err := monitor.Silence(alert.Silence{
		Name:   "deployment 1234",
		Match:  []string{`alertname=~"pool.*"`, `instance="web-1"`},
		EndsAt: time.Now().Add(10 * time.Minute),
	})
	if err != nil {
		fmt.Println(err)
	}
	now, ctx := time.Now(), context.Background()
	monitor.Evaluate(now)
	_ = monitor.Flush(ctx)
	fmt.Println("silenced by", monitor.Alerts()[0].SilencedBy)
	monitor.Evaluate(now.Add(11 * time.Minute))
	_ = monitor.Flush(ctx)
	// Output:
	// silenced by deployment 1234
	// page: pool full: firing: gauge is 1, alerts above 0.9
}

// A program can send test messages before anything happens, for example if a flag is set.
func ExampleMonitor_Test() {
	monitor := alert.NewMonitor(alert.Config{Notify: []alert.Notifier{
		userNotifier{},
		alert.Func("chat", func(context.Context, alert.Alert) error { return errors.New("status 404 Not Found") }),
	}})
	for _, name := range []string{"pager", "chat"} {
		if err := monitor.Test(context.Background(), name); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// page: weir test: firing: This is a test message. Nothing is wrong.
	// page: weir test: resolved: This is the end of a test message. Nothing was wrong.
	// alert: test of notifier "chat": firing message: alert: not delivered: status 404 Not Found
}

// A breaker that has closed more than twice within 15 minutes flaps.
func ExampleTransitions() {
	payments := breaker.New("payments", breaker.Config{})
	monitor := alert.NewMonitor(alert.Config{Notify: []alert.Notifier{userNotifier{}}}, alert.Rule{
		Name: "payments flaps", Value: alert.Transitions(payments, "closed", 15*time.Minute), When: alert.Above(2),
	})
	now, ctx := time.Now(), context.Background()
	monitor.Evaluate(now)
	for range 3 {
		for payments.State() == breaker.Closed {
			_ = payments.Run(ctx, func(context.Context) error { return errors.New("the bank is down") })
		}
		payments.Reset()
	}
	monitor.Evaluate(now.Add(time.Minute))
	_ = monitor.Flush(ctx)
	// Output:
	// page: payments flaps: firing: number of transitions to closed over 15m is 3, alerts above 2
}
