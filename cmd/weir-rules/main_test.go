package main

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// output returns what the command writes with the arguments.
func output(t *testing.T, args ...string) string {
	t.Helper()
	var out, log strings.Builder
	require.Zero(t, run(args, &out, &log), "%v: %s", args, log.String())
	require.Empty(t, log.String())
	return out.String()
}

var heading = regexp.MustCompile(`(?m)^  - alert: "(.*)"$|^      severity: "(.*)"$`)

// headings returns the name and the severity of each rule in a file.
func headings(file string) string {
	var b strings.Builder
	for _, found := range heading.FindAllStringSubmatch(file, -1) {
		b.WriteString(found[1] + found[2] + map[bool]string{true: ", ", false: "\n"}[found[1] != ""])
	}
	return b.String()
}

const healthHeadings = `BreakerOpen, page
BreakerGroupOpen, page
BreakerFlapping, ticket
BreakerRefusing, ticket
BreakerGroupFull, ticket
LimiterSaturated, ticket
LimiterFull, ticket
NotifierFailing, page
NotifierDropping, ticket
MonitorStalled, page
RuleFailing, ticket
MetricsIncomplete, ticket
ConfigRefused, ticket
`

func TestRulesOverHealth(t *testing.T) {
	file := output(t, "-scrape", "15s")
	require.Equal(t, healthHeadings, headings(file))
	require.True(t, strings.HasPrefix(file, "# Written by weir-rules.\ngroups:\n- name: \"weir health\"\n  rules:\n"))
	require.Contains(t, file, `
  - alert: "NotifierFailing"
    expr: "weir_notifier_pending > 0"
    for: 315s
    keep_firing_for: 300s
    labels:
      severity: "page"
    annotations:
      summary: "notifier {{ $labels.weir_notifier_name }} does not deliver: {{ $value }} notifications wait"
`)
}

func TestRulesOverObjectives(t *testing.T) {
	file := output(t, "-slo", "payments=0.999", "-slo", "a=b=0.99")
	require.Equal(t, healthHeadings+`payments burn 14.4x, page
payments burn 6x, page
payments burn 3x, ticket
payments burn 1x, ticket
a=b burn 14.4x, page
a=b burn 6x, page
a=b burn 3x, ticket
a=b burn 1x, ticket
`, headings(file))
	require.Contains(t, file, "\n- name: \"weir error budgets\"\n  rules:\n  - alert: \"payments burn 14.4x\"\n")
}

func TestRulesDependOnTheIntervals(t *testing.T) {
	defaults := output(t)
	require.Equal(t, defaults, output(t, "-scrape=1m", "-interval=5s"))
	require.Contains(t, defaults, " offset 120s")
	require.Contains(t, defaults, " offset 75s")
	require.Contains(t, output(t, "-scrape=1ms"), " offset 60001ms")
	require.Contains(t, output(t, "-scrape=2m", "-interval=1h"), " offset 10920s")
	output(t, "-interval=1ns")
}

func TestHelp(t *testing.T) {
	for _, arg := range []string{"-h", "-help", "--help"} {
		usage := output(t, arg)
		for _, flag := range []string{"Usage of weir-rules:", "-scrape interval", "(default 1m0s)", "-interval interval", "(default 5s)", "-slo breaker=share"} {
			require.Contains(t, usage, flag)
		}
	}
}

func TestInvalidArguments(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"-nope", "weir-rules: flag provided but not defined: -nope"},
		{"rules.yml", `weir-rules: unknown argument "rules.yml"`},
		{"-scrape 15s help", `weir-rules: unknown argument "help"`},
		{"-scrape", "weir-rules: flag needs an argument: -scrape"},
		{"-scrape 15", `weir-rules: invalid value "15" for flag -scrape: parse error`},
		{"-scrape 1h", "weir-rules: -scrape is 1h0m0s, must be from 1ms to 2m0s"},
		{"-interval -1ns", "weir-rules: -interval is -1ns, must be positive and at most 1h0m0s"},
		{
			"-interval 61m -scrape 0",
			"weir-rules: -interval is 1h1m0s, must be positive and at most 1h0m0s\nweir-rules: -scrape is 0s, must be from 1ms to 2m0s",
		},
		{"-slo payments", `weir-rules: invalid value "payments" for flag -slo: must be a name and a share, such as payments=0.999`},
		{"-slo =0.9", `weir-rules: invalid value "=0.9" for flag -slo: must be a name and a share, such as payments=0.999`},
		{"-slo a=99%", `weir-rules: invalid value "a=99%" for flag -slo: the share "99%" is no number`},
		{"-slo a=0.9", `weir-rules: invalid value "a=0.9" for flag -slo: the objective is 0.9, too low for a burn rate of 14.4: the highest is 10`},
		{"-slo a=0", `weir-rules: invalid value "a=0" for flag -slo: the objective is 0, must lie between 0 and 1`},
		{"-slo a=1", `weir-rules: invalid value "a=1" for flag -slo: the objective is 1, must lie between 0 and 1`},
		{"-slo a=-1", `weir-rules: invalid value "a=-1" for flag -slo: the objective is -1, must lie between 0 and 1`},
		{"-slo a=2", `weir-rules: invalid value "a=2" for flag -slo: the objective is 2, must lie between 0 and 1`},
		{"-slo a=NaN", `weir-rules: invalid value "a=NaN" for flag -slo: the objective is NaN, must lie between 0 and 1`},
	} {
		var out, log strings.Builder
		require.Equal(t, 2, run(strings.Fields(c.args), &out, &log), c.args)
		require.Equal(t, c.want+"\nweir-rules -h shows the arguments\n", log.String())
		require.Empty(t, out.String(), "nothing is written")
	}
}

// fullDisk is a writer that fails.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestFailedWrite(t *testing.T) {
	var log strings.Builder
	require.Equal(t, 1, run(nil, fullDisk{}, &log))
	require.Equal(t, "weir-rules: no space left on device\n", log.String())
}
