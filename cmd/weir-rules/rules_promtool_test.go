package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/internal/testenv"
	"github.com/weir-go/weir/window"
)

// promtool runs Prometheus' rule tester on a file with the text.
func promtool(t *testing.T, dir, name, text string, command ...string) {
	t.Helper()
	path := testenv.Program(t, "promtool", "/usr/bin/promtool")
	file := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	out, err := exec.CommandContext(t.Context(), path, append(command, file)...).CombinedOutput()
	require.NoError(t, err, "%.3000s", out)
}

// writeRules writes the rules to a file and checks it with promtool.
func writeRules(t *testing.T, rules []rule) (dir string) {
	t.Helper()
	var b strings.Builder
	require.NoError(t, write(&b, group{"test", rules}))
	dir = t.TempDir()
	promtool(t, dir, "rules.yml", b.String(), "check", "rules", "--lint-fatal")
	return dir
}

type series struct{ name, values string }

// expectedFiring is the names of all alerts that fire at a time.
type expectedFiring struct {
	at   string
	want []string
}

func checkFirings(t *testing.T, dir, interval string, input []series, checks []expectedFiring) {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "rule_files: [rules.yml]\nevaluation_interval: %[1]s\ntests:\n- interval: %[1]s\n  input_series:\n", interval)
	for _, s := range input {
		fmt.Fprintf(&b, "  - series: '%s'\n    values: '%s'\n", s.name, s.values)
	}
	b.WriteString("  promql_expr_test:\n")
	for _, c := range checks {
		fmt.Fprintf(&b, "  - expr: 'group by (alertname) (ALERTS{alertstate=\"firing\"})'\n    eval_time: %s\n    exp_samples:\n", c.at)
		for _, name := range c.want {
			fmt.Fprintf(&b, "    - labels: '{alertname=\"%s\"}'\n      value: 1\n", name)
		}
	}
	promtool(t, dir, "test.yml", b.String(), "test", "rules")
}

func calls(outcome string) string {
	return `weir_breaker_calls_total{weir_breaker_name="payments",weir_breaker_outcome="` + outcome + `"}`
}

func TestBurnRateRules(t *testing.T) {
	group, err := burnRateRules("payments", 0.999)
	require.NoError(t, err)
	dir := writeRules(t, group)
	// After eight hours without failures, half of the calls are bad for an hour: a quarter failed,
	// and a quarter were refused.
	checkFirings(t, dir, "1m", []series{
		{calls("success"), "0+100x480 48050+50x60 51100+100x600"},
		{calls("failure"), "0+0x480 25+25x60 1525+0x600"},
		{calls("refused"), "0+0x480 25+25x60 1525+0x600"},
		{calls("ignored"), "0+100x1140"},
	}, []expectedFiring{
		{"8h", nil},
		{"8h1m", []string{"payments burn 1x"}},
		{"8h6m", []string{"payments burn 1x", "payments burn 14.4x", "payments burn 3x", "payments burn 6x"}},
		{"9h30m", []string{"payments burn 1x", "payments burn 3x", "payments burn 6x"}},
		{"10h", []string{"payments burn 1x", "payments burn 3x"}},
		{"18h", nil},
	})
}

// The rules of a process and of a server agree once both have the same history.
func TestBurnRateRulesEqualThoseOfAProcess(t *testing.T) {
	group, err := burnRateRules("payments", 0.999)
	require.NoError(t, err)
	dir := writeRules(t, group[:2])
	for name, bad := range map[string]int64{"nearly 14.4x": 14, "over 14.4x": 15, "nearly 6x": 5, "over 6x": 7} {
		t.Run(name, func(t *testing.T) {
			payments := &totalsSource{}
			monitor := alert.NewMonitor(alert.Config{}, alert.BurnRateRules("payments", payments, 0.999)...)
			start := time.Now()
			for minute := range 481 {
				monitor.Evaluate(start.Add(time.Duration(minute) * time.Minute))
				payments.Failures += bad
				payments.Successes += 1000 - bad
			}
			var want []string
			for _, a := range monitor.Alerts() {
				require.Equal(t, a.Labels["alertname"], a.Rule)
				want = append(want, a.Rule)
			}
			checkFirings(t, dir, "1m", []series{
				{calls("success"), fmt.Sprintf("0+%dx480", 1000-bad)}, {calls("failure"), fmt.Sprintf("0+%dx480", bad)},
			}, []expectedFiring{{"8h", want}})
			require.Len(t, want, map[bool]int{true: 2, false: 0}[bad > 14]+map[bool]int{true: 1, false: 0}[bad > 6 && bad < 15])
		})
	}
}

type totalsSource window.Totals

func (s *totalsSource) Totals() window.Totals { return window.Totals(*s) }

func TestHealthRules(t *testing.T) {
	health := healthRules(intervals{evaluation: 5 * time.Second, scrape: time.Minute})
	dir := writeRules(t, health)
	quiet := []series{
		{`weir_breaker_state{weir_breaker_name="a",weir_breaker_state="open"}`, "0x60"},
		{`weir_breaker_state{weir_breaker_name="a",weir_breaker_state="closed"}`, "1x60"},
		{`weir_breaker_transitions_total{weir_breaker_name="a",weir_breaker_state="open"}`, "1+2x60"},
		{`weir_breaker_transitions_total{weir_breaker_name="a",weir_breaker_state="closed"}`, "1x60"},
		{`weir_breaker_calls_total{weir_breaker_name="a",weir_breaker_outcome="refused"}`, "7x60"},
		{`weir_limiter_requests_total{weir_limiter_name="a",weir_limiter_outcome="refused"}`, "0+9x60"},
		{`weir_limiter_requests_total{weir_limiter_name="a",weir_limiter_outcome="allowed"}`, "0+91x60"},
		{`weir_notifier_pending{weir_notifier_name="a"}`, "0 1 1 0 0 5x4 0x52"},
		{`weir_notifier_notifications_total{weir_notifier_name="a",weir_notifier_outcome="failed",error_type="timeout"}`, "0+1x60"},
		{`weir_notifier_notifications_total{weir_notifier_name="a",weir_notifier_outcome="dropped"}`, "3x60"},
		{`weir_alert_evaluations_total{weir_alert_rule="a",error_type=""}`, "0+12x60"},
		{`weir_alert_evaluations_total{weir_alert_rule="a",error_type="panic"}`, "0x10 1x50"},
		{`weir_breaker_group_unguarded_total{weir_breaker_name="a"}`, "0x10 70x50"},
		{`weir_exporter_source_panics_total`, "0x10 1x50"},
		{`weir_exporter_skipped_samples_total{weir_exporter_reason="duplicate"}`, "0x10 1x50"},
		{`weir_alert_last_evaluation_timestamp_seconds{weir_alert_rule="a"}`, "0+60x60"},
	}
	checkFirings(t, dir, "1m", quiet, []expectedFiring{{"30m", nil}, {"60m", nil}})
	quiet = append(quiet, series{`weir_breaker_transitions_total{weir_breaker_name="b",weir_breaker_state="half_open"}`, "0x60"},
		series{`weir_breaker_transitions_total{weir_breaker_name="b",weir_breaker_state="forced_closed"}`, "0x60"})
	for want, s := range map[string]series{
		"BreakerOpen":      {`weir_breaker_state{weir_breaker_name="b",weir_breaker_state="open"}`, "0x20 1x40"},
		"BreakerFlapping":  {`weir_breaker_transitions_total{weir_breaker_name="b",weir_breaker_state="closed"}`, "0x20 1 1 2 2 3 4x35"},
		"BreakerRefusing":  {`weir_breaker_calls_total{weir_breaker_name="b",weir_breaker_outcome="refused"}`, "0x20 0+60x40"},
		"LimiterSaturated": {`weir_limiter_requests_total{weir_limiter_name="b",weir_limiter_outcome="refused"}`, "0x20 0+60x40"},
		"NotifierFailing":  {`weir_notifier_pending{weir_notifier_name="b"}`, "0x20 1x40"},
		"MonitorStalled":   {`weir_alert_last_evaluation_timestamp_seconds{weir_alert_rule="b"}`, "0+60x20 1200x40"},
	} {
		t.Run(want, func(t *testing.T) {
			checkFirings(t, dir, "1m", append(quiet, s), []expectedFiring{{"19m", nil}, {"32m", []string{want}}})
		})
	}
}

func TestNamesAreQuoted(t *testing.T) {
	group, err := burnRateRules("a \"b\" \\ c\nd: {{ <é>", 0.999)
	require.NoError(t, err)
	writeRules(t, group)
}
