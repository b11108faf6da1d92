// Command alertmanager sends an alert to a Prometheus Alertmanager, which groups, silences and
// routes it. Start a server with: prometheus-alertmanager --cluster.listen-address= Without a
// server it shows how an alert that cannot be delivered is retried and counted.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/alert/notify"
)

func main() {
	url := flag.String("url", "http://127.0.0.1:9093", "the URL of the Alertmanager")
	flag.Parse()
	payments := weir.New("payments", weir.Config{})

	monitor := alert.NewMonitor(
		alert.Config{
			Interval: 100 * time.Millisecond,
			Notify:   []alert.Notifier{notify.NewAlertmanager(notify.Config{URL: notify.Secret(*url)})},
		},
		alert.Rule{
			Name:     "payments fail",
			Value:    alert.FailureRate(payments, time.Minute),
			When:     alert.Above(0.05),
			MinCalls: 20,
			Severity: "page",
			Labels:   map[string]string{"service": "shop"},
		},
	)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		monitor.Run(ctx)
		close(done)
	}()

	time.Sleep(200 * time.Millisecond) // calls before the first evaluation are not seen
	for range 50 {
		_ = payments.Run(ctx, func(context.Context) error { return errors.New("declined") })
	}
	time.Sleep(2 * time.Second)
	for _, a := range monitor.Alerts() {
		fmt.Println(a)
	}
	cancel()
	<-done

	for s, value := range monitor.Observe {
		if s.Instrument.Name == "weir.notifier.notifications" && value > 0 {
			fmt.Println(s.Values, value)
		}
	}
}
