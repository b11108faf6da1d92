package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/dev/tools/internal/modules"
)

// printed returns what a report prints of the events.
func printed(t *testing.T, events ...event) string {
	t.Helper()
	var out strings.Builder
	r := &report{out: &out}
	for _, e := range events {
		line, err := json.Marshal(e)
		require.NoError(t, err)
		r.add(append(line, '\n'))
	}
	r.printSkipped()
	return out.String()
}

func TestAPackageThatPassesTakesOneLine(t *testing.T) {
	require.Equal(t, "ok  \ta\t0.1s\n", printed(t,
		event{Action: "output", Package: "a", Test: "TestX", Output: "=== RUN   TestX\n"},
		event{Action: "output", Package: "a", Test: "TestX", Output: "    x_test.go:1: fine\n"},
		event{Action: "output", Package: "b", Output: "?   \tb\t[no test files]\n"},
		event{Action: "skip", Package: "b"},
		event{Action: "output", Package: "a", Output: "ok  \ta\t0.1s\n"},
		event{Action: "pass", Package: "a"},
	))
}

func TestAPackageThatFailsIsPrintedWhole(t *testing.T) {
	require.Equal(t, "    x_test.go:1: wrong\n--- FAIL: TestX (0.00s)\nFAIL\nFAIL\ta\t0.1s\n", printed(t,
		event{Action: "output", Package: "a", Test: "TestX", Output: "=== RUN   TestX\n"},
		event{Action: "output", Package: "b", Test: "TestY", Output: "    y_test.go:1: of another package\n"},
		event{Action: "output", Package: "a", Test: "TestX", Output: "    x_test.go:1: wrong\n"},
		event{Action: "output", Package: "a", Test: "TestX", Output: "--- FAIL: TestX (0.00s)\n"},
		event{Action: "output", Package: "a", Output: "FAIL\n"},
		event{Action: "output", Package: "a", Output: "FAIL\ta\t0.1s\n"},
		event{Action: "fail", Package: "a"},
	))
}

func TestSkippedTestsAreCountedByReason(t *testing.T) {
	require.Equal(t, "skipped 1: chromium is not installed\nskipped 2: redis-server is not installed\n", printed(t,
		event{Action: "output", Package: "a", Test: "TestX", Output: "    x_test.go:1: redis-server is not installed\n"},
		event{Action: "skip", Package: "a", Test: "TestX"},
		event{Action: "output", Package: "a", Test: "TestY", Output: "    y_test.go:1: chromium is not installed\n"},
		event{Action: "skip", Package: "a", Test: "TestY"},
		event{Action: "output", Package: "b", Output: "skipped: redis-server is not installed\n"},
		event{Action: "pass", Package: "b"},
	))
}

func TestOutputOfTheCompilerIsPrintedAtOnce(t *testing.T) {
	require.Equal(t, "x.go:1: undefined: y\n", printed(t, event{Action: "build-output", Output: "x.go:1: undefined: y\n"}))
	var out strings.Builder
	(&report{out: &out}).add([]byte("go: no such module\n"))
	require.Equal(t, "go: no such module\n", out.String())
}

func TestSlowModulesStartFirst(t *testing.T) {
	list := []modules.Module{{Dir: "."}, {Dir: "bench"}, {Dir: "fleet"}, {Dir: "tests"}}
	var dirs []string
	for _, m := range order(list, []string{"fleet", "."}) {
		dirs = append(dirs, m.Dir)
	}
	require.Equal(t, []string{"fleet", ".", "bench", "tests"}, dirs)
}

func TestOnlyModulesOfNoraceAreTestedWithoutTheRaceDetector(t *testing.T) {
	o := options{norace: []string{"proving"}}
	flags := []string{"-race", "-shuffle=on"}
	require.Equal(t, []string{"-shuffle=on"}, o.flagsOf(modules.Module{Dir: "proving"}, flags))
	require.Equal(t, flags, o.flagsOf(modules.Module{Dir: "."}, flags))
	require.Equal(t, []string{"-race", "-shuffle=on"}, flags, "unchanged")
}

func TestADirectoryWithoutAModuleIsAnError(t *testing.T) {
	for _, o := range []options{{root: "../../..", first: []string{"flet"}}, {root: "../../..", norace: []string{"proof"}}} {
		require.ErrorContains(t, run(t.Context(), o, nil), "no module in directory")
	}
}
