package notify_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/alert/notify"
	"github.com/weir-go/weir/breaker"
)

// The texts that Slack and webhooks get have the reason, the margin and the last failures.
func TestMessagesShowTheLastFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		payments := breaker.New("payments", breaker.Config{ConsecutiveFailures: 2})
		server := newServer()
		c := notify.Config{URL: "http://chat.example/x", Transport: server.transport}
		m := alert.NewMonitor(alert.Config{Notify: []alert.Notifier{notify.NewSlack(c), notify.NewWebhook(c)}}, alert.Rule{
			Name: "down", Value: alert.Bool(payments.Tripped), When: alert.Above(0),
			Describe: func(a alert.Alert) string { return a.Summary + "\n" + payments.Explain() },
		})
		for range 2 {
			_ = payments.Run(t.Context(), func(context.Context) error { return errors.New("no route to the bank") })
		}
		require.True(t, payments.Tripped())
		m.Evaluate(time.Now())
		require.NoError(t, m.Flush(t.Context()))
		require.Len(t, server.requests(), 2)
		for _, r := range server.requests() {
			require.True(t, json.Valid(r.body))
			require.Contains(t, string(r.body), "1 failure fewer in a row would not have opened it")
			require.Contains(t, string(r.body), "no route to the bank")
		}
		server.stop()
	})
}
