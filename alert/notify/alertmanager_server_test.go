package notify_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/alert/notify"
	"github.com/weir-go/weir/internal/testenv"
	"github.com/weir-go/weir/window"
)

// alertmanager is an Alertmanager process of a test.
type alertmanager struct {
	t       *testing.T
	dir     string
	address string
	process *exec.Cmd
}

// startAlertmanager starts an Alertmanager that sends notifications to the receiver at once.
func startAlertmanager(t *testing.T, receiver string) *alertmanager {
	m := &alertmanager{t: t, dir: t.TempDir(), address: freeAddress(t)}
	config := "global:\n  resolve_timeout: 1m\n" +
		"route:\n  receiver: test\n  group_by: [alertname]\n  group_wait: 100ms\n  group_interval: 500ms\n  repeat_interval: 1h\n" +
		"receivers:\n- name: test\n  webhook_configs:\n  - url: " + receiver + "\n    send_resolved: true\n"
	require.NoError(t, os.WriteFile(filepath.Join(m.dir, "am.yml"), []byte(config), 0o600))
	t.Cleanup(m.kill)
	m.start()
	return m
}

func alertmanagerBinary(t *testing.T) string {
	t.Helper()
	return testenv.Program(t, "prometheus-alertmanager", "alertmanager", "/usr/bin/prometheus-alertmanager")
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

func (m *alertmanager) start() {
	m.t.Helper()
	m.process = exec.Command(alertmanagerBinary(m.t), //nolint:noctx // it has to outlive the test's context, to be stopped in its cleanup
		"--config.file="+filepath.Join(m.dir, "am.yml"), "--storage.path="+filepath.Join(m.dir, "data"),
		"--web.listen-address="+m.address, "--cluster.listen-address=", "--log.level=error")
	require.NoError(m.t, m.process.Start())
	require.Eventually(m.t, func() bool { return m.get("/-/ready", nil) }, time.Minute, 20*time.Millisecond, "Alertmanager is ready")
}

// kill ends the process without letting it save anything.
func (m *alertmanager) kill() {
	if m.process != nil {
		_ = m.process.Process.Signal(syscall.SIGKILL)
		_ = m.process.Wait()
		m.process = nil
	}
}

func (m *alertmanager) get(path string, into any) bool {
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://"+m.address+path, http.NoBody)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return err == nil && response.StatusCode == http.StatusOK && (into == nil || json.Unmarshal(body, into) == nil)
}

// activeFingerprints returns the fingerprints of the active alerts.
func (m *alertmanager) activeFingerprints() (fingerprints []string) {
	var alerts []struct{ Fingerprint string }
	m.get("/api/v2/alerts?active=true", &alerts)
	for _, a := range alerts {
		fingerprints = append(fingerprints, a.Fingerprint)
	}
	return fingerprints
}

// pagerReceiver is the receiver of an Alertmanager's notifications.
type pagerReceiver struct {
	*httptest.Server
	mu       sync.Mutex
	messages []pagerMessage
}

type pagerMessage struct {
	Status string
	Alerts []struct{ Status, Fingerprint string }
}

func newPagerReceiver(t *testing.T) *pagerReceiver {
	p := &pagerReceiver{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var m pagerMessage
		if json.NewDecoder(bytes.NewReader(body)).Decode(&m) == nil {
			p.mu.Lock()
			p.messages = append(p.messages, m)
			p.mu.Unlock()
		}
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *pagerReceiver) statuses() (statuses []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.messages {
		statuses = append(statuses, m.Status)
	}
	return statuses
}

func (p *pagerReceiver) last() pagerMessage {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.messages[len(p.messages)-1]
}

// shopSource is a source whose calls fail while down is set.
type shopSource struct {
	ok, failed atomic.Int64
	down       atomic.Bool
}

func (s *shopSource) Totals() window.Totals {
	n := &s.ok
	if s.down.Load() {
		n = &s.failed
	}
	n.Add(50)
	return window.Totals{Successes: s.ok.Load(), Failures: s.failed.Load()}
}

func TestWithAlertmanager(t *testing.T) {
	receiver := newPagerReceiver(t)
	server := startAlertmanager(t, receiver.URL)
	shop := &shopSource{}
	sink := notify.NewAlertmanager(notify.Config{URL: notify.Secret("http://" + server.address), Repeat: time.Second})
	monitor := alert.NewMonitor(alert.Config{Interval: 100 * time.Millisecond, Notify: []alert.Notifier{sink}, Logger: discardLogger()},
		alert.Rule{
			Name: "shop errors", Value: alert.FailureRate(shop, time.Second), When: alert.Above(0.5), For: 300 * time.Millisecond,
			Severity: "page", Labels: map[string]string{"team": "süd"},
		})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go monitor.Run(ctx)

	shop.down.Store(true)
	require.Eventually(t, func() bool { return len(receiver.statuses()) == 1 }, time.Minute, 20*time.Millisecond, "the alert arrives")
	id := monitor.Alerts()[0].ID
	require.Equal(t, []string{id}, server.activeFingerprints(), "the ID is Alertmanager's fingerprint")
	require.Equal(t, id, receiver.last().Alerts[0].Fingerprint)

	require.Never(t, func() bool { return len(receiver.statuses()) > 1 }, 3*time.Second, 50*time.Millisecond, "repeats send no further notification")

	server.kill()
	require.Eventually(t, func() bool { return notify.BreakerOf(sink).Totals().Failures > 0 }, time.Minute, 20*time.Millisecond, "a repeat has failed")
	server.start()
	began := time.Now()
	require.Eventually(t, func() bool { return len(server.activeFingerprints()) == 1 }, time.Minute, 20*time.Millisecond, "Alertmanager has the alert again")
	t.Logf("known again %v after the restart; breaker %v", time.Since(began).Round(10*time.Millisecond), notify.BreakerOf(sink).State())

	shop.down.Store(false)
	require.Eventually(t, func() bool { return receiver.last().Status == "resolved" }, time.Minute, 20*time.Millisecond, "it resolves")
	require.Empty(t, server.activeFingerprints())

	cancel()
	ending, done := context.WithTimeout(t.Context(), 10*time.Second)
	defer done()
	require.NoError(t, monitor.Flush(ending))
	require.Equal(t, "resolved", receiver.statuses()[len(receiver.statuses())-1])
	t.Logf("the receiver got %v", receiver.statuses())
}

// Two processes have the same rule. One keeps failing, the other fails for a moment.
func TestProcessesDoNotResolveEachOthersAlerts(t *testing.T) {
	receiver := newPagerReceiver(t)
	server := startAlertmanager(t, receiver.URL)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	process := func(instance string) (bad *atomic.Bool, m *alert.Monitor) {
		bad = new(atomic.Bool)
		sink := notify.NewAlertmanager(notify.Config{URL: notify.Secret("http://" + server.address), Repeat: time.Second})
		m = alert.NewMonitor(alert.Config{
			Interval: 100 * time.Millisecond, Instance: instance, Notify: []alert.Notifier{sink}, Logger: discardLogger(),
		}, alert.Rule{Name: "errors", Value: alert.Bool(bad.Load), When: alert.Above(0)})
		go m.Run(ctx)
		return bad, m
	}
	down, one := process("") // the default instance
	blip, other := process("web-2:1")
	down.Store(true)
	require.Eventually(t, func() bool { return len(server.activeFingerprints()) == 1 }, time.Minute, 20*time.Millisecond, "the first process fires")
	id := one.Alerts()[0].ID
	require.Equal(t, []string{id}, server.activeFingerprints())

	blip.Store(true)
	require.Eventually(t, func() bool { return len(server.activeFingerprints()) == 2 }, time.Minute, 20*time.Millisecond, "the second process fires")
	require.NotEqual(t, id, other.Alerts()[0].ID)
	blip.Store(false)
	require.Eventually(t, func() bool { return len(server.activeFingerprints()) == 1 }, time.Minute, 20*time.Millisecond, "the second resolves")
	require.Never(t, func() bool { return len(server.activeFingerprints()) != 1 || server.activeFingerprints()[0] != id }, 3*time.Second, 50*time.Millisecond,
		"the first goes on")
	down.Store(false)
	require.Eventually(t, func() bool { return len(server.activeFingerprints()) == 0 }, time.Minute, 20*time.Millisecond, "the first resolves")
}
