package weirconfig_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/weirconfig"
)

// faults returns the lines of the error for a file.
func faults(t *testing.T, file string) []string {
	t.Helper()
	_, err := weirconfig.Parse("w.yaml", []byte(file))
	require.Error(t, err)
	return strings.Split(err.Error(), "\n")
}

func TestFaultsOfTheForm(t *testing.T) {
	require.Equal(t, []string{
		`w.yaml:3: gates.payments: max_concurent is unknown, did you mean max_concurrent?`,
		`w.yaml:4: gates.payments: rate is "fast", must be a rate such as 100/s, 10/1m, 5000/24h or unlimited`,
		`w.yaml:6: gates.payments.breaker: on_change is not data: a program sets it, see Config`,
		`w.yaml:7: gates.payments.breaker: latency is "yes", must be true or false`,
		`w.yaml:8: gates.payments.breaker: cooldown is -1, must be written as off if the field can be off`,
		`w.yaml:9: gates.payments.breaker: probes is "0b3", must be a whole number`,
		`w.yaml:10: gates.payments.breaker: slow_rate is "Inf", must be a number such as 0.5 or 50%`,
		`w.yaml:11: gates."a.b c": breaker must be names with values`,
		`w.yaml:12: gates: payments is there twice, first in line 2`,
		`w.yaml:13: gates: the name "" must have 1 to 200 bytes and no control characters`,
		`w.yaml:14: colour is unknown, must be one of gates, groups, limits, monitor, rules, sinks`,
		`w.yaml:15: rules must be a list`,
		`w.yaml:16: sinks: has a merge key <<, which is not supported`,
	}, faults(t, `gates:
  payments:
    max_concurent: 5
    rate: fast
    breaker:
      on_change: f
      latency: yes
      cooldown: -1ns
      probes: 0b3
      slow_rate: Inf
  a.b c: {breaker: 3}
  payments: {}
  "": {}
colour: red
rules: {}
sinks: {<<: {}}
`))
}

func TestFaultsOfGatesAndGroups(t *testing.T) {
	require.Equal(t, []string{
		`w.yaml:2: gates.payments: burst is 3, must be 0 without a rate`,
		`w.yaml:4: gates.payments.breaker: failure_rate is 2, must be above 0 and at most 1, or off`,
		`w.yaml:5: gates.payments.breaker: probes is off, must lie between 1 and 10000`,
		`w.yaml:6: gates.payments.breaker: window is 800h0m0s, must lie between 1ms and 720h0m0s`,
		`w.yaml:7: gates.payments: max_wait is -1s, must be at least 0`,
		`w.yaml:10: groups.payments: name is that of gates.payments in line 1 too: give it another name`,
		`w.yaml:11: groups.payments: max_keys is off, must be at least 1`,
		`w.yaml:12: groups.payments.gate.breaker: min_calls is -5, must be at least 1`,
		`w.yaml:12: groups.payments.gate: max_concurrent is 2000000, must be between 1 and 1000000 (or 0 for no bound)`,
	}, faults(t, `gates: {payments: {
    burst: 3,
    breaker: {
      failure_rate: 200%,
      probes: off,
      window: 800h, buckets: 1000},
    max_wait: -1s
  }}
groups:
  payments:
    max_keys: off
    gate: {breaker: {min_calls: -5}, max_concurrent: 2000000}
`))
}

func TestMinusOneIsNotOff(t *testing.T) {
	require.Equal(t, []string{
		`w.yaml:1: gates.a.breaker: failure_run is -1, must be written as off if the field can be off`,
		`w.yaml:1: gates.a.breaker: failure_rate is -1, must be written as off if the field can be off`,
		`w.yaml:1: gates.a.breaker: slow_rate is -1, must be written as off if the field can be off`,
	}, faults(t, `gates: {a: {breaker: {failure_run: -1, failure_rate: -1.0, slow_rate: -100%}}}`))
}

// A fault that follows from another one is left out.
func TestConsequencesOfFaultsAreLeftOut(t *testing.T) {
	require.Equal(t, []string{`w.yaml:1: gates.a: rat is unknown, did you mean rate?`},
		faults(t, `gates: {a: {rat: 5/s, burst: 3}}`))
	require.Equal(t, []string{`w.yaml:1: gates.a: rate is "5", must be a rate such as 100/s, 10/1m, 5000/24h or unlimited`},
		faults(t, `gates: {a: {rate: 5, burst: 3}}`))
}

func TestFilesThatCannotBeRead(t *testing.T) {
	deep := "gates: " + strings.Repeat("[", 17) + strings.Repeat("]", 17)
	for file, want := range map[string]string{
		"":                         "w.yaml: is empty",
		"# nothing":                "w.yaml: is empty",
		"gates: {}\n---\nb: 1":     "w.yaml:2: begins a second document, must have one",
		"gates: {}\n- 1":           "w.yaml:2: did not find expected key",
		"gates: &a {}\nrules: *a":  "w.yaml:1: has an anchor, which is not supported",
		"gates: *hunter2":          "w.yaml:1: unknown anchor",
		"gates: !!map {}":          "w.yaml:1: has a tag, which is not supported",
		"- 1":                      "w.yaml:1: the file must be names with values",
		"gates":                    "w.yaml:1: the file must be names with values",
		"? [a]\n: b":               "w.yaml:1: has a key that is not a text",
		deep:                       "w.yaml:1: is nested more than 16 deep",
		strings.Repeat("[", 1<<20): "w.yaml:1: exceeded max depth of 10000",
		"gates: [" + strings.Repeat("a,", 50_000): "w.yaml:1: has more than 50000 lines, commas and colons up to here",
		strings.Repeat(" ", 1<<20+1):              "w.yaml: has more than 1048576 bytes",
	} {
		require.Equal(t, []string{want}, faults(t, file), "%.50q", file)
	}
}

func TestLoadReadsAtMostOneMegabyte(t *testing.T) {
	path := filepath.Join(t.TempDir(), "w.yaml")
	require.NoError(t, os.WriteFile(path, []byte("gates: {payments: {}}"), 0o600))
	file, err := weirconfig.Load(path)
	require.NoError(t, err)
	set, err := weirconfig.New(file, weirconfig.Config{})
	require.NoError(t, err)
	require.Equal(t, "payments", set.Gate("payments").Name())

	require.NoError(t, os.Truncate(path, 1<<40)) // a sparse file
	_, err = weirconfig.Load(path)
	require.EqualError(t, err, "weirconfig: "+path+" has more than 1048576 bytes")
	_, err = weirconfig.Load(path + "x")
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestFaultsAreBounded(t *testing.T) {
	lines := faults(t, "gates:\n"+strings.Repeat("  a: {b: c}\n", 500))
	require.Len(t, lines, 101)
	require.Equal(t, "w.yaml: has 400 more faults", lines[100])
}

func TestJSONIsRead(t *testing.T) {
	file, err := weirconfig.Parse("w.json", []byte(`{"gates": {"payments": {"rate": "100/s", "burst": 20, "breaker": {"failure_rate": 0.25}}}}`))
	require.NoError(t, err)
	set, err := weirconfig.New(file, weirconfig.Config{})
	require.NoError(t, err)
	require.NotNil(t, set.Gate("payments").Limiter())
}
