package alert_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/internal/testenv"
)

// promtool returns the path of Prometheus' rule tester.
func promtool(t *testing.T) string {
	t.Helper()
	return testenv.Program(t, "promtool", "/usr/bin/promtool")
}

// Prometheus and this package get the same samples and rules. After each evaluation, an alert must
// have the same state in both.
func TestStatesEqualPrometheus(t *testing.T) {
	const (
		series   = 60
		samples  = 50
		interval = 15 * time.Second
	)
	random := rand.New(rand.NewPCG(7, 11))
	var rules, input, checks strings.Builder
	met := map[string]int{}
	for n := range series {
		rule := alert.Rule{
			When: alert.Above(5), NoData: alert.Resolve,
			For: time.Duration(random.IntN(5)) * interval, KeepFiring: time.Duration(random.IntN(5)) * interval,
		}
		fmt.Fprintf(&rules, "  - alert: a%d\n    expr: v%d > 5\n    for: %s\n    keep_firing_for: %s\n",
			n, n, secondsText(rule.For), secondsText(rule.KeepFiring))
		p := newRuleProbe(rule)
		values, states := walkRandomly(random, p, samples, interval)
		fmt.Fprintf(&input, "  - series: v%d\n    values: '%s'\n", n, strings.Join(values, " "))
		for i, state := range states {
			met[state]++
			addExpectation(&checks, n, time.Duration(i)*interval, state)
		}
	}
	for _, state := range []string{"inactive", "pending", "firing", "resolved"} {
		require.Greater(t, met[state], 100, "evaluations that found %s", state)
	}
	dir := t.TempDir()
	writeTestFile(t, dir, "rules.yml", "groups:\n- name: g\n  rules:\n"+rules.String())
	writeTestFile(t, dir, "test.yml", fmt.Sprintf("rule_files: [rules.yml]\nevaluation_interval: %[1]s\ntests:\n- interval: %[1]s\n"+
		"  input_series:\n%[2]s  promql_expr_test:\n%[3]s", secondsText(interval), input.String(), checks.String()))
	out, err := exec.CommandContext(t.Context(), promtool(t), "test", "rules", filepath.Join(dir, "test.yml")).CombinedOutput()
	require.NoError(t, err, "%.3000s", out)
}

// walkRandomly evaluates a random walk, which reaches all states.
func walkRandomly(random *rand.Rand, p *ruleProbe, samples int, interval time.Duration) (values, states []string) {
	value, text := 0.0, ""
	for i := range samples {
		if i == 0 || random.IntN(3) == 0 {
			value = float64(random.IntN(11))
		}
		sample := sampleOf(value)
		text = fmt.Sprint(value)
		if random.IntN(10) == 0 {
			sample, text = noSample, "stale"
		}
		values = append(values, text)
		states = append(states, p.at(time.Duration(i)*interval, sample))
	}
	return values, states
}

func addExpectation(checks *strings.Builder, n int, at time.Duration, state string) {
	fmt.Fprintf(checks, "  - expr: ALERTS{alertname=\"a%d\"}\n    eval_time: %s\n", n, secondsText(at))
	if state == "pending" || state == "firing" {
		fmt.Fprintf(checks, "    exp_samples:\n    - labels: 'ALERTS{alertname=\"a%d\",alertstate=\"%s\"}'\n      value: 1\n", n, state)
	}
}

func secondsText(d time.Duration) string { return fmt.Sprintf("%ds", int(d.Seconds())) }

func writeTestFile(t *testing.T, dir, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
}
