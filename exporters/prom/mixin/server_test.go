package mixin_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/exporters/prom"
	"github.com/weir-go/weir/internal/testenv"
	"github.com/weir-go/weir/stat"
)

// A Prometheus server pages once during an outage: for refused and hanging calls, for a client with
// few calls and for a group. It never pages for a monitor that evaluates. The durations of the
// rules are shortened to 4 s.
func TestPrometheusPagesOncePerOutage(t *testing.T) {
	var outage atomic.Bool
	monitor := alert.NewMonitor(alert.Config{}, alert.Rule{Name: "never", Value: alert.Bool(func() bool { return false }), When: alert.Above(0)})
	sources := append(startShop(t, &outage), monitor)
	runInBackground(t, func(ctx context.Context) { monitor.Run(ctx) })
	registry := prometheus.NewRegistry()
	registry.MustRegister(prom.NewCollector(sources...))
	target := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	t.Cleanup(target.Close)

	rules := outputOf(t, "-scrape", "1s")
	for _, c := range []struct{ pattern, quick string }{
		{" for: \\d\\d+s", " for: 5s"}, {"keep_firing_for: 300s", "keep_firing_for: 4s"}, {" offset 61s", " offset 5s"},
	} {
		require.Regexp(t, c.pattern, rules)
		rules = regexp.MustCompile(c.pattern).ReplaceAllString(rules, c.quick)
	}
	server := startPrometheus(t, rules, strings.TrimPrefix(target.URL, "http://"))
	want := map[string]bool{"BreakerOpen refused": true, "BreakerOpen hanging": true, "BreakerOpen quiet": true, "BreakerGroupOpen hosts": true}
	is := func(expr string, want map[string]bool) func() bool {
		return func() bool { return fmt.Sprint(server.alerts(expr)) == fmt.Sprint(want) }
	}
	const firing = `ALERTS{alertstate="firing",severity="page"}`
	isNot := func(want map[string]bool) func() bool { return func() bool { return !is(firing, want)() } }
	require.Never(t, isNot(map[string]bool{}), 6*time.Second, 200*time.Millisecond, "no pages without an outage")
	outage.Store(true)
	require.Eventually(t, is(firing, want), time.Minute, 200*time.Millisecond, "fires")
	require.Never(t, isNot(want), 5*time.Second, 200*time.Millisecond, "no resolution during the outage")
	outage.Store(false)
	require.Eventually(t, is(firing, map[string]bool{}), time.Minute, 200*time.Millisecond, "resolves")
	starts := fmt.Sprintf(`count_over_time((%s unless %[1]s offset 1s)[5m:1s])`, firing)
	require.Equal(t, want, server.alerts(starts+" == 1"), "each once")
	require.Equal(t, want, server.alerts(starts))
}

// runInBackground runs f until the end of the test.
func runInBackground(t *testing.T, f func(context.Context)) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() { f(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

// startShop makes calls through breakers, which fail during the outage.
func startShop(t *testing.T, outage *atomic.Bool) []stat.Source {
	quick := breaker.Config{Window: time.Second, MinCalls: 5, Cooldown: 500 * time.Millisecond, ProbeTimeout: 3 * time.Second, Recovery: time.Second}
	refused, hanging := breaker.New("refused", quick), breaker.New("hanging", quick)
	quiet := breaker.New("quiet", breaker.Config{ConsecutiveFailures: 1, Cooldown: 500 * time.Millisecond, Recovery: time.Second})
	hosts := breaker.NewGroup[string]("hosts", breaker.GroupConfig{Breaker: quick})
	call := func(ctx context.Context, b *breaker.Breaker, hangs time.Duration) {
		_ = b.Run(ctx, func(ctx context.Context) error {
			if !outage.Load() {
				return nil
			}
			select {
			case <-ctx.Done():
			case <-time.After(hangs):
			}
			return errors.New("down")
		})
	}
	each := func(interval time.Duration, f func(ctx context.Context, n int)) {
		runInBackground(t, func(ctx context.Context) {
			var calls sync.WaitGroup
			defer calls.Wait()
			tick := time.NewTicker(interval)
			defer tick.Stop()
			for n := 0; ctx.Err() == nil; n++ {
				calls.Go(func() { f(ctx, n) })
				select {
				case <-ctx.Done():
				case <-tick.C:
				}
			}
		})
	}
	each(20*time.Millisecond, func(ctx context.Context, n int) {
		call(ctx, refused, 0)
		call(ctx, hosts.Get(fmt.Sprint("host-", n%3)), 0)
	})
	each(50*time.Millisecond, func(ctx context.Context, _ int) { call(ctx, hanging, 2*time.Second) })
	each(2*time.Second, func(ctx context.Context, _ int) { call(ctx, quiet, time.Second) })
	return []stat.Source{refused, hanging, quiet, hosts}
}

// server is a Prometheus process.
type server struct {
	t    *testing.T
	base string
}

// startPrometheus starts a Prometheus that scrapes the target every second until the test ends.
func startPrometheus(t *testing.T, rules, target string) *server {
	t.Helper()
	path := testenv.Program(t, "prometheus")
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "rules.yml"), []byte(rules), 0o600))
	config := fmt.Sprintf("global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [rules.yml]\n"+
		"scrape_configs:\n- job_name: shop\n  static_configs: [{targets: [%q]}]\n", target)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o600))
	log, ends := io.Pipe()
	runInBackground(t, func(ctx context.Context) {
		process := exec.CommandContext(ctx, path, "--config.file="+filepath.Join(dir, "prometheus.yml"),
			"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address=127.0.0.1:0")
		process.Stderr = ends
		process.Cancel = func() error { return process.Process.Signal(syscall.SIGTERM) }
		process.WaitDelay = 10 * time.Second
		_ = ends.CloseWithError(process.Run()) // whose message says that it was stopped
	})
	return &server{t: t, base: "http://" + whenReady(t, log)}
}

var listenAddressPattern = regexp.MustCompile(`msg="Listening on" address=(\S+)`)

// whenReady reads the log until Prometheus serves requests, and returns its address.
func whenReady(t *testing.T, log io.Reader) (address string) {
	t.Helper()
	lines := bufio.NewScanner(log)
	var read strings.Builder
	for lines.Scan() {
		if found := listenAddressPattern.FindStringSubmatch(lines.Text()); found != nil {
			address = found[1]
		}
		if strings.Contains(lines.Text(), "Server is ready to receive web requests") {
			go func() { _, _ = io.Copy(io.Discard, log) }() // or it would block one day
			return address
		}
		read.WriteString(lines.Text() + "\n")
	}
	require.Fail(t, "prometheus ended", read.String())
	return ""
}

// alerts evaluates an expression over alerts and returns their names and subjects.
func (s *server) alerts(expr string) map[string]bool {
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.base+"/api/v1/query?"+url.Values{"query": {expr}}.Encode(), http.NoBody)
	require.NoError(s.t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(s.t, err)
	defer response.Body.Close()
	var answer struct {
		Status, Error string
		Data          struct {
			Result []struct{ Metric map[string]string }
		}
	}
	require.NoError(s.t, json.NewDecoder(response.Body).Decode(&answer))
	require.Equal(s.t, "success", answer.Status, "%s: %s", expr, answer.Error)
	names := map[string]bool{}
	for _, r := range answer.Data.Result {
		names[r.Metric["alertname"]+" "+r.Metric["weir_breaker_name"]] = true
	}
	return names
}
