// Command alert shows an alert that fires while a service fails, and resolves afterwards. It needs
// no monitoring server: the alert goes to the log, and through a webhook to an HTTP server, here in
// this program. A real service would use minutes where this program uses seconds.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/alert/notify"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	payments := weir.New("payments", weir.Config{})

	pager := httptest.NewServer(http.HandlerFunc(printWebhook)) // replaces your own server
	defer pager.Close()

	monitor := alert.NewMonitor(
		alert.Config{
			Interval: 100 * time.Millisecond,
			Notify:   []alert.Notifier{alert.Log(slog.Default()), notify.NewWebhook(notify.Config{URL: notify.Secret(pager.URL)})},
		},
		alert.Rule{
			Name:     "payments fail",
			Value:    alert.FailureRate(payments, time.Second),
			When:     alert.Above(0.05),
			Resolve:  alert.Below(0.02),
			MinCalls: 20,
			For:      500 * time.Millisecond,
		},
	)

	var parts sync.WaitGroup
	parts.Go(func() { monitor.Run(ctx) })
	parts.Go(func() { pay(ctx, payments) })
	parts.Wait()
}

// printWebhook prints the body of a webhook: the same JSON that Alertmanager's webhooks have.
func printWebhook(_ http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	fmt.Printf("webhook: %s (%v)\n", body, err)
}

// pay makes 100 payments per second. From the first second to the third every fifth payment fails:
// too few to open the breaker, but enough for the alert.
func pay(ctx context.Context, payments *weir.Gate) {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for call := 0; ctx.Err() == nil; call++ {
		<-ticker.C
		fails := call > 100 && call < 300 && call%5 == 0
		_ = payments.Run(ctx, func(context.Context) error { // the gate counts the errors
			if fails {
				return errors.New("declined")
			}
			return nil
		})
	}
}
