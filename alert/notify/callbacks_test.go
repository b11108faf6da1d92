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
	"github.com/weir-go/weir/breaker"
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

// guardedNotifier is a notifier with a breaker.
type guardedNotifier interface {
	alert.Notifier
	Name() string
	Repeat() time.Duration
	Breaker() *breaker.Breaker
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
	return map[string]guardedNotifier{"webhook": notify.NewWebhook(c), "Alertmanager": notify.NewAlertmanager(c), "mail": notify.NewMail(m)}
}

// useNotifier calls every method of the notifier.
func useNotifier(ctx context.Context, n guardedNotifier) error {
	_ = fmt.Sprint(n.Name(), n.Repeat(), n)
	n.Breaker().Reset()
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
