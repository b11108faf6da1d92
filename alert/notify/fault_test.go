package notify_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/alert/notify"
	"github.com/weir-go/weir/breaker"
)

// A receiver fails while the alert fires, resolves and fires again. Once it works again, it gets
// only the latest state.
func TestLatestStateArrivesAfterEveryKindOfFailure(t *testing.T) {
	for fault, spoil := range map[string]func(s *server){
		"http_5xx":    func(s *server) { s.replies(500) },
		"http_4xx":    func(s *server) { s.replies(429, "Retry-After", "20") },
		"unreachable": func(s *server) { s.down.Store(true); s.transport.CloseIdleConnections() },
		"timeout":     func(s *server) { s.answer.Store(http.HandlerFunc(neverAnswer)) },
		"dropped":     func(s *server) { s.answer.Store(http.HandlerFunc(dropConnection)) },
	} {
		t.Run(fault, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newServer()
				hook := notify.NewWebhook(notify.Config{URL: "http://a.example", Transport: server.transport})
				w := newSwitchedMonitor(t, hook, discardLogger())
				w.set(true)
				w.set(false)
				require.Equal(t, []string{"firing", "resolved"}, server.statuses(t), "one message per state while nothing fails")

				spoil(server)
				for range 5 {
					w.set(true)
					w.set(false)
				}
				w.set(true)
				time.Sleep(10 * time.Minute)
				if fault == "dropped" {
					fault = "unreachable"
				}
				require.NotZero(t, w.metric("failed", fault))
				require.Equal(t, 2.0, w.metric("delivered", ""))

				server.down.Store(false)
				server.replies(200)
				tries := len(server.requests())
				time.Sleep(time.Minute)
				require.Equal(t, []string{"firing"}, server.statuses(t)[tries:])
				require.Equal(t, 3.0, w.metric("delivered", ""))
				require.Zero(t, w.metric("dropped", ""))
				w.stop()
				server.stop()
			})
		})
	}
}

func neverAnswer(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

func dropConnection(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

func TestRetryAfterHeaderIsObeyed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		server.replies(429, "Retry-After", "300")
		w := newSwitchedMonitor(t, notify.NewWebhook(notify.Config{URL: "http://a.example", Transport: server.transport}), discardLogger())
		w.set(true)
		time.Sleep(290 * time.Second)
		require.Len(t, server.times(), 1)
		server.replies(200)
		time.Sleep(40 * time.Second)
		require.Len(t, server.times(), 2)
		require.GreaterOrEqual(t, server.times()[1].Sub(server.times()[0]), 300*time.Second)
		w.stop()
		server.stop()
	})
}

func TestBreakerOpensForADeadServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		server.replies(500)
		hook := notify.NewWebhook(notify.Config{URL: "http://a.example", Transport: server.transport})
		for range 5 {
			require.ErrorContains(t, hook.Notify(t.Context(), firingAlert()), "status 500")
		}
		require.True(t, notify.BreakerOf(hook).Tripped())
		err := hook.Notify(t.Context(), firingAlert())
		var failed *alert.DeliveryError
		require.ErrorAs(t, err, &failed)
		require.Equal(t, "breaker_open", failed.Kind)
		require.Equal(t, 15*time.Second, failed.RetryAfter())
		require.ErrorIs(t, err, breaker.ErrOpen)
		require.Len(t, server.requests(), 5, "no requests while the breaker is open")

		server.replies(400)
		time.Sleep(15 * time.Second)
		require.ErrorContains(t, hook.Notify(t.Context(), firingAlert()), "status 400")
		require.Equal(t, breaker.Closed, notify.BreakerOf(hook).State(), "a server that refuses an alert is healthy")
		server.stop()
	})
}

func TestCanceledAttemptIsNotCountedByTheBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		server.answer.Store(http.HandlerFunc(neverAnswer))
		hook := notify.NewWebhook(notify.Config{URL: "http://a.example", Transport: server.transport})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		require.Equal(t, context.Canceled, hook.Notify(ctx, firingAlert()))
		require.Zero(t, notify.BreakerOf(hook).Totals().Failures)
		server.stop()
	})
}

func TestAttemptsHaveADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		server.answer.Store(http.HandlerFunc(neverAnswer))
		hook := notify.NewWebhook(notify.Config{URL: "http://a.example", Transport: server.transport})
		began := time.Now()
		require.Error(t, hook.Notify(t.Context(), firingAlert()))
		require.Equal(t, 30*time.Second, time.Since(began))
		require.EqualValues(t, 1, notify.BreakerOf(hook).Totals().Failures)
		server.stop()
	})
}

func TestInvalidURLs(t *testing.T) {
	for _, bad := range []string{"", secret, "/" + secret, "ftp://a/" + secret, "file:///" + secret, "http://" + secret + "\x00", "http:///" + secret} {
		err := notify.Config{URL: notify.Secret(bad)}.Validate()
		require.EqualError(t, err, "notify: URL (not shown) must be absolute, with scheme http or https")
		require.PanicsWithError(t, err.Error(), func() { notify.NewSlack(notify.Config{URL: notify.Secret(bad)}) })
	}
	for _, good := range []string{"http://a.example", "HTTPS://a.example:8443/b?c=d"} {
		require.NoError(t, notify.Config{URL: notify.Secret(good)}.Validate())
	}
}

func TestUntrustedCertificateIsRefused(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.StartTLS()
	defer server.Close()
	require.EqualError(t, notify.NewWebhook(notify.Config{URL: notify.Secret(server.URL)}).Notify(t.Context(), firingAlert()),
		"alert: not delivered: no secure connection")
	require.Zero(t, asked.Load())
	trusting := notify.Config{URL: notify.Secret(server.URL), Transport: server.Client().Transport}
	require.NoError(t, notify.NewWebhook(trusting).Notify(t.Context(), firingAlert()))
	require.EqualValues(t, 1, asked.Load())
}

func TestInvalidConfigs(t *testing.T) {
	err := notify.Config{URL: "http://a.example", Repeat: -2, Breaker: breaker.Config{Probes: -3}}.Validate()
	require.EqualError(t, err, "notify: Repeat is -2ns, must be at least 0, or Off\nnotify: Breaker: breaker: Probes is -3, must lie between 1 and 10000")
	require.NoError(t, notify.Config{URL: "http://a.example", Repeat: notify.Off}.Validate())

	// The breaker is validated with the defaults of this package.
	calls := notify.Config{URL: "http://a.example", Breaker: breaker.Config{LastCalls: 20}}
	require.NoError(t, calls.Validate())
	require.NotPanics(t, func() { notify.NewWebhook(calls) })
	short := notify.Config{URL: "http://a.example", Breaker: breaker.Config{MaxCooldown: 10 * time.Second}}
	require.EqualError(t, short.Validate(), "notify: Breaker: breaker: MaxCooldown is 10s, must be at least Cooldown, 15s")
	require.Zero(t, repeatOf(notify.NewWebhook(notify.Config{URL: "http://a.example", Repeat: notify.Off})))
	require.Equal(t, 4*time.Hour, repeatOf(notify.NewSlack(notify.Config{URL: "http://a.example"})))
	require.Equal(t, time.Minute, repeatOf(notify.NewAlertmanager(notify.Config{URL: "http://a.example"})))
}
