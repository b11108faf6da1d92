package notify_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/alert/notify"
	"github.com/weir-go/weir/limiter"
)

// A gate whose service is down for ten minutes, a monitor with a rule about its breaker, and a
// receiver.
func TestOutageOfAGateSendsTwoMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		payments := weir.New("payments", weir.Config{Rate: limiter.PerSecond(200), Burst: 50})
		monitor := alert.NewMonitor(
			alert.Config{Notify: []alert.Notifier{notify.NewWebhook(notify.Config{URL: "http://a.example", Transport: server.transport})}},
			alert.Rule{
				Name: "payments errors", Value: alert.FailureRate(payments, 5*time.Minute),
				When: alert.Above(0.05), MinCalls: 20, For: 30 * time.Second,
			})
		ctx, cancel := context.WithCancel(t.Context())
		go monitor.Run(ctx)
		call := func(d time.Duration, err error) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
				_ = payments.Run(ctx, func(context.Context) error { return err })
			}
		}
		call(5*time.Minute, nil)
		call(10*time.Minute, errors.New("down"))
		call(20*time.Minute, nil)
		require.Greater(t, payments.Totals().Refused, payments.Totals().Failures)
		require.Equal(t, []string{"firing", "resolved"}, server.statuses(t))
		cancel()
		synctest.Wait()
		server.stop()
	})
}
