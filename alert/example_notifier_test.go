package alert_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir/alert"
)

// userNotifier is a notifier written by a user.
type userNotifier struct{}

func ExampleNotifier() {
	monitor := alert.NewMonitor(alert.Config{Notify: []alert.Notifier{userNotifier{}}}, alert.Rule{
		Name: "fire", Value: alert.Bool(func() bool { return true }), When: alert.Above(0),
	})
	monitor.Evaluate(time.Now())
	_ = monitor.Flush(context.Background())
	// Output:
	// page: fire: firing: boolean is 1, alerts above 0
}

// digestNotifier takes many alerts at once, and receives firing alerts again every hour.
type digestNotifier struct{ userNotifier }

// A notifier may take many alerts at once and ask for repetitions.
func ExampleNotifier_optional() {
	always := alert.Bool(func() bool { return true })
	monitor := alert.NewMonitor(alert.Config{Notify: []alert.Notifier{digestNotifier{}}},
		alert.Rule{Name: "fire", Value: always, When: alert.Above(0)},
		alert.Rule{Name: "flood", Value: always, When: alert.Above(0)})
	now := time.Now()
	for range 3 {
		monitor.Evaluate(now)
		_ = monitor.Flush(context.Background())
		now = now.Add(40 * time.Minute)
	}
	// Output:
	// 2 alerts
	// 2 alerts
}

func ExampleDeliveryError() {
	refusing := alert.Func("pager", func(context.Context, alert.Alert) error {
		return &alert.DeliveryError{Kind: "http_4xx", Permanent: true, Err: errors.New("no such number")}
	})
	monitor := alert.NewMonitor(alert.Config{Notify: []alert.Notifier{refusing}, Logger: newPlainLogger()}, alert.Rule{
		Name: "fire", Value: alert.Bool(func() bool { return true }), When: alert.Above(0),
	})
	monitor.Evaluate(time.Now())
	fmt.Println(monitor.Flush(context.Background()))
	// Output:
	// level=ERROR msg="alert: receiver refused an alert" weir.notifier.name=pager weir.alert.rule=fire error="alert: not delivered: no such number"
	// <nil>
}

// A notifier returns the reason of a failure, and whether another attempt makes sense.
func ExampleFailure() {
	err := &alert.DeliveryError{Kind: "http_4xx", Permanent: true, Err: errors.New("status 410 Gone")}
	fmt.Println(err.Kind, err)
	// Output: http_4xx alert: not delivered: status 410 Gone
}
