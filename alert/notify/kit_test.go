package notify_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/internal/instrument"
)

const secret = "T0PSECRET"

// server is an HTTP server without a network, so that it works in a synctest bubble.
type server struct {
	http      *http.Server
	conns     chan net.Conn
	closed    chan struct{}
	transport *http.Transport
	down      atomic.Bool
	answer    atomic.Value // of an http.HandlerFunc

	mu   sync.Mutex
	got  []request
	when []time.Time
}

type request struct {
	header http.Header
	path   string
	body   []byte
}

func newServer() *server {
	s := &server{conns: make(chan net.Conn), closed: make(chan struct{})}
	s.transport = &http.Transport{DialContext: s.dial}
	s.answer.Store(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	s.http = &http.Server{Handler: http.HandlerFunc(s.serve), ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	go func() { _ = s.http.Serve(s) }()
	return s
}

func (s *server) dial(ctx context.Context, _, address string) (net.Conn, error) {
	if s.down.Load() {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: address}}
	}
	client, conn := net.Pipe()
	select {
	case s.conns <- conn:
		return client, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *server) Accept() (net.Conn, error) {
	select {
	case c := <-s.conns:
		return c, nil
	case <-s.closed:
		return nil, net.ErrClosed
	}
}

func (s *server) Close() error   { return nil }
func (s *server) Addr() net.Addr { return &net.TCPAddr{} }

func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	s.mu.Lock()
	s.got = append(s.got, request{r.Header, r.URL.String(), body})
	s.when = append(s.when, time.Now())
	s.mu.Unlock()
	s.answer.Load().(http.HandlerFunc)(w, r)
}

func (s *server) replies(code int, header ...string) {
	s.answer.Store(answerStatus(code, header...))
}

func (s *server) requests() []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]request(nil), s.got...)
}

func (s *server) times() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]time.Time(nil), s.when...)
}

// stop closes all connections and waits for the goroutines.
func (s *server) stop() {
	s.transport.CloseIdleConnections()
	close(s.closed)
	_ = s.http.Close()
	synctest.Wait()
}

// statuses returns the states in the webhooks received.
func (s *server) statuses(t *testing.T) (statuses []string) {
	t.Helper()
	for _, r := range s.requests() {
		var m struct{ Status string }
		require.NoError(t, json.Unmarshal(r.body, &m))
		statuses = append(statuses, m.Status)
	}
	return statuses
}

// switchedMonitor is a running monitor of one rule that a test turns on and off.
type switchedMonitor struct {
	*alert.Monitor
	bad  atomic.Bool
	stop func()
}

func newSwitchedMonitor(t *testing.T, n alert.Notifier, logger *slog.Logger) *switchedMonitor {
	w := &switchedMonitor{}
	w.Monitor = alert.NewMonitor(alert.Config{Interval: time.Second, Notify: []alert.Notifier{n}, Logger: logger},
		alert.Rule{Name: "errors", Value: alert.Bool(w.bad.Load), When: alert.Above(0), Severity: "page"})
	ctx, cancel := context.WithCancel(t.Context())
	w.stop = func() { cancel(); synctest.Wait() }
	go w.Run(ctx)
	return w
}

func (w *switchedMonitor) set(bad bool) {
	w.bad.Store(bad)
	time.Sleep(2 * time.Second)
}

func (w *switchedMonitor) metric(outcome, kind string) (value float64) {
	for s, v := range w.Observe {
		if s.Instrument == instrument.NotifierNotifications && s.Values[1] == outcome && s.Values[2] == kind {
			value = v
		}
	}
	return value
}

// notifyAll sends the alerts in one message.
func notifyAll(ctx context.Context, n alert.Notifier, alerts []alert.Alert) error {
	return n.(interface {
		NotifyAll(ctx context.Context, alerts []alert.Alert) error
	}).NotifyAll(ctx, alerts)
}

func repeatOf(n alert.Notifier) time.Duration {
	return n.(interface{ Repeat() time.Duration }).Repeat()
}

func discardLogger() *slog.Logger { return slog.New(slog.DiscardHandler) }

func firingAlert() alert.Alert {
	labels := map[string]string{"alertname": "errors", "severity": "page"}
	return alert.Alert{
		ID: "0123456789abcdef", Rule: "errors", Labels: labels, Summary: "failure rate is <0.4> & rising",
		State: alert.Firing, Value: 0.4, StartsAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
}

func resolvedAlert() alert.Alert {
	a := firingAlert()
	a.State, a.EndsAt = alert.Resolved, a.StartsAt.Add(time.Hour)
	return a
}

// statusReceiver is a receiver that keeps the latest state of each alert.
type statusReceiver struct {
	mu    sync.Mutex
	known map[string]alertStatus
	stale int // messages older than the known state
}

type alertStatus struct {
	status string
	starts time.Time
}

func (l *statusReceiver) accept(_ http.ResponseWriter, r *http.Request) {
	var m struct {
		Alerts []struct {
			Status   string
			Labels   map[string]string
			StartsAt time.Time
		}
	}
	if json.NewDecoder(r.Body).Decode(&m) != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known == nil {
		l.known = map[string]alertStatus{}
	}
	for _, a := range m.Alerts {
		before := l.known[a.Labels["alertname"]]
		if a.StartsAt.Before(before.starts) || a.StartsAt.Equal(before.starts) && before.status == "resolved" {
			l.stale++
		}
		l.known[a.Labels["alertname"]] = alertStatus{a.Status, a.StartsAt}
	}
}

func (l *statusReceiver) latest(rule string) (status string, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h, known := l.known[rule]
	return h.status, known
}
