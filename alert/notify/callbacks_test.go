package notify_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/alert/notify"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/stat/view"
)

// callingTransport is a transport that calls a function before each request.
type callingTransport struct {
	call func()
	http.RoundTripper
}

func (c callingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	c.call()
	return c.RoundTripper.RoundTrip(r)
}

// guardedNotifier is a notifier with all methods that those of this package have.
type guardedNotifier interface {
	alert.Notifier
	stat.HistogramSource
	view.Viewer
	Repeat() time.Duration
}

// notifiers returns a notifier for each way to reach a server, which calls a function meanwhile.
func notifiers(t *testing.T, s *server, call func()) map[string]guardedNotifier {
	c := notify.Config{URL: "http://x.example", Transport: callingTransport{call, s.transport}}
	mails := newMailServer(t)
	m := mailConfig(mails)
	m.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		call()
		return mails.dial(ctx, network, address)
	}
	return map[string]guardedNotifier{
		"webhook":      notify.NewWebhook(c).(guardedNotifier),
		"Alertmanager": notify.NewAlertmanager(c).(guardedNotifier),
		"mail":         notify.NewMail(m).(guardedNotifier),
	}
}

// useNotifier calls every method of the notifier.
func useNotifier(ctx context.Context, n guardedNotifier) error {
	_ = fmt.Sprint(n.Name(), n.Repeat(), n)
	n.Observe(func(*stat.Series, float64) bool { return true })
	n.Histograms(func(*stat.Series, stat.Histogram) bool { return true })
	n.Views(func(v view.View) bool { v.(view.Guard).Status(); return true })
	notify.BreakerOf(n).Reset()
	if m, ok := n.(interface {
		NotifyAll(ctx context.Context, alerts []alert.Alert) error
	}); ok {
		if err := m.NotifyAll(ctx, []alert.Alert{firingAlert(), resolvedAlert()}); err != nil {
			return err
		}
	}
	return n.Notify(ctx, firingAlert())
}

// What reaches the server may call the notifier, and while it blocks, other alerts are sent.
func TestTransportsMayCallTheNotifierAndDelayNoOtherAlert(t *testing.T) {
	for _, name := range []string{"webhook", "Alertmanager", "mail"} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer()
			var n guardedNotifier
			nested, seen := false, 0
			n = notifiers(t, s, func() {
				if nested {
					return
				}
				nested = true
				defer func() { nested = false }()
				seen++
				require.NoError(t, useNotifier(t.Context(), n), name)
			})[name]
			require.NoError(t, n.Notify(t.Context(), firingAlert()), name)
			require.Equal(t, 1, seen, name)

			var blocked atomic.Bool
			end, done := make(chan struct{}), make(chan error)
			n = notifiers(t, s, func() {
				if blocked.CompareAndSwap(false, true) {
					<-end
				}
			})[name]
			go func() { done <- n.Notify(t.Context(), firingAlert()) }()
			synctest.Wait()
			require.True(t, blocked.Load(), name)
			require.NoError(t, useNotifier(t.Context(), n), name)
			close(end)
			require.NoError(t, <-done, name)
			s.stop()
		})
	}
}
