package servers_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/testenv"
)

// prometheusServer is a running Prometheus.
type prometheusServer struct {
	t    *testing.T
	base string
}

const prometheusConfig = `
global: {scrape_interval: 200ms, scrape_timeout: 200ms, evaluation_interval: 200ms}
rule_files: [%q]
scrape_configs:
- job_name: program
  static_configs: [{targets: [%q]}]
`

// startPrometheus runs a Prometheus with weir's alert rules that scrapes the target until the end
// of the test.
func startPrometheus(t *testing.T, target string, flags ...string) *prometheusServer {
	t.Helper()
	path := testenv.Program(t, "prometheus")
	dir := t.TempDir()
	rules, err := filepath.Abs("../../../exporters/prom/mixin/alerts.yml")
	require.NoError(t, err)
	config := filepath.Join(dir, "prometheus.yml")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, prometheusConfig, rules, target), 0o600))

	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	process := exec.CommandContext(ctx, path, append([]string{
		"--config.file=" + config, "--storage.tsdb.path=" + filepath.Join(dir, "data"), "--web.listen-address=127.0.0.1:0",
	}, flags...)...)
	process.Cancel = func() error { return process.Process.Signal(syscall.SIGTERM) }
	process.WaitDelay = 10 * time.Second
	log, err := process.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, process.Start())
	t.Cleanup(func() {
		cancel()
		_ = process.Wait() // returns an error because the process was stopped
	})
	return &prometheusServer{t: t, base: "http://" + whenReady(t, log)}
}

var listensOn = regexp.MustCompile(`msg="Listening on" address=(\S+)`)

// whenReady reads the log until Prometheus serves requests, and returns its address.
func whenReady(t *testing.T, log io.Reader) (address string) {
	t.Helper()
	lines := bufio.NewScanner(log)
	var read strings.Builder
	for lines.Scan() {
		if found := listensOn.FindStringSubmatch(lines.Text()); found != nil {
			address = found[1]
		}
		if strings.Contains(lines.Text(), "Server is ready to receive web requests") {
			go func() { _, _ = io.Copy(io.Discard, log) }() // a full pipe would block Prometheus
			return address
		}
		read.WriteString(lines.Text() + "\n")
	}
	require.Fail(t, "prometheus ended", read.String())
	return ""
}

// sample is one sample of an answer.
type sample struct {
	Metric map[string]string
	Value  [2]any // the time, and the value as text
}

func (p *prometheusServer) get(path string, parameters url.Values, data any) {
	p.t.Helper()
	request, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, p.base+path+"?"+parameters.Encode(), http.NoBody)
	require.NoError(p.t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(p.t, err)
	defer response.Body.Close()
	answer := struct {
		Status, Error string
		Data          any
	}{Data: data}
	require.NoError(p.t, json.NewDecoder(response.Body).Decode(&answer))
	require.Equal(p.t, "success", answer.Status, "%v: %s", parameters, answer.Error)
}

// query evaluates the expression now.
func (p *prometheusServer) query(expr string) []sample {
	p.t.Helper()
	var data struct{ Result []sample }
	p.get("/api/v1/query", url.Values{"query": {expr}}, &data)
	return data.Result
}

// valuesBy evaluates the expression and returns its values, each under its value of the label.
func (p *prometheusServer) valuesBy(label, expr string) map[string]float64 {
	p.t.Helper()
	values := map[string]float64{}
	for _, s := range p.query(expr) {
		require.NotContains(p.t, values, s.Metric[label], expr)
		values[s.Metric[label]] = p.number(s)
	}
	return values
}

// singleValue evaluates an expression with exactly one value.
func (p *prometheusServer) singleValue(expr string) float64 {
	p.t.Helper()
	result := p.query(expr)
	require.Len(p.t, result, 1, expr)
	return p.number(result[0])
}

func (p *prometheusServer) number(s sample) float64 {
	p.t.Helper()
	value, err := strconv.ParseFloat(s.Value[1].(string), 64)
	require.NoError(p.t, err)
	return value
}

// awaitScrape waits for a scrape that begins after awaitScrape is called.
func (p *prometheusServer) awaitScrape() {
	p.t.Helper()
	now := float64(time.Now().UnixMilli()) / 1000
	require.Eventually(p.t, func() bool {
		result := p.query(`timestamp(weir_exporter_source_panics_total)`)
		return len(result) == 1 && p.number(result[0]) > now
	}, 30*time.Second, 50*time.Millisecond, "no scrape of the program")
}
