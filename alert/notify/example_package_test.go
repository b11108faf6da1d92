package notify_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/alert/notify"
)

// A message to Slack when more than 5 % of the payments fail.
func Example() {
	chat := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var message struct{ Text string }
		_ = json.NewDecoder(r.Body).Decode(&message)
		fmt.Println(message.Text)
	}))
	defer chat.Close()

	payments := weir.New("payments", weir.Config{})
	// in a program, the URL of an incoming webhook
	slack := notify.NewSlack(notify.Config{URL: notify.Secret(chat.URL)})
	monitor := alert.NewMonitor(
		alert.Config{Notify: []alert.Notifier{slack}},
		alert.Rule{
			Name:     "payments fail",
			Value:    alert.FailureRate(payments, 5*time.Minute),
			When:     alert.Above(0.05),
			MinCalls: 20,
		})

	// A program calls go monitor.Run(ctx). The example sets the time instead.
	ctx, now := context.Background(), time.Now()
	monitor.Evaluate(now)
	for range 40 {
		_ = payments.Run(ctx, func(context.Context) error { return errors.New("the bank is down") })
	}
	monitor.Evaluate(now.Add(5 * time.Second))
	if err := monitor.Flush(ctx); err != nil {
		fmt.Println(err)
	}
	// Output: [FIRING] payments fail
}
