package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the files that a report of the streams prints")

// The streams in testdata are recorded: NAME.json is what go test -json printed of a package NAME,
// without times, and NAME.txt is what a report prints of it.
func TestReportsOfRecordedStreams(t *testing.T) {
	streams, err := filepath.Glob("testdata/*.json")
	require.NoError(t, err)
	require.Len(t, streams, 11)
	for _, name := range streams {
		stream, err := os.ReadFile(name)
		require.NoError(t, err)
		want := strings.TrimSuffix(name, ".json") + ".txt"
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			r := newReport(&out)
			for line := range bytes.Lines(stream) {
				r.add(".", line)
			}
			r.printSummary()
			if *update {
				require.NoError(t, os.WriteFile(want, out.Bytes(), 0o600))
			}
			text, err := os.ReadFile(want)
			require.NoError(t, err)
			require.Equal(t, string(text), out.String(), name)
			require.Empty(t, r.running)
		})
	}
}

// printed returns what a report prints of the events.
func printed(t *testing.T, events ...event) string {
	t.Helper()
	var out strings.Builder
	r := newReport(&out)
	addAll(t, r, events...)
	r.printSummary()
	return out.String()
}

func addAll(t *testing.T, r *report, events ...event) {
	t.Helper()
	for _, e := range events {
		line, err := json.Marshal(e)
		require.NoError(t, err)
		r.add(".", append(line, '\n'))
	}
}

func TestSkippedTestsAreCountedByReason(t *testing.T) {
	require.Equal(t, "skipped 1: chromium is not installed\nskipped 2: redis-server is not installed\npackages: 3, in 0s\n", printed(t,
		event{Action: "output", Package: "a", Test: "TestX", Output: "    x_test.go:1: redis-server is not installed\n"},
		event{Action: "skip", Package: "a", Test: "TestX"},
		event{Action: "output", Package: "a", Test: "TestY", Output: "    y_test.go:1: chromium is not installed\n"},
		event{Action: "skip", Package: "a", Test: "TestY"},
		event{Action: "pass", Package: "a"},
		event{Action: "output", Package: "b", Output: "skipped: redis-server is not installed\n"},
		event{Action: "pass", Package: "b"},
		event{Action: "skip", Package: "c"}, // it has no tests
	))
}

func TestTheSlowestPackagesComeLast(t *testing.T) {
	var events []event
	for name, seconds := range map[string]float64{"a": 2, "b": 9, "c": 0.9, "d": 30.25, "e": 4, "f": 3, "g": 1} {
		events = append(events, event{Action: "pass", Package: name, Elapsed: seconds})
	}
	require.Equal(t, "slowest:  30.2s d\nslowest:   9.0s b\nslowest:   4.0s e\nslowest:   3.0s f\nslowest:   2.0s a\npackages: 7, in 0s\n", printed(t, events...))
}

func TestATestThatFailsOnceOfTwoTimesIsNamed(t *testing.T) {
	require.Equal(t, "--- FAIL: TestX (0.50s)\nfailed: a TestX\npackages: 1, in 0s\n", printed(t,
		event{Action: "run", Package: "a", Test: "TestX"},
		event{Action: "fail", Package: "a", Test: "TestX", Elapsed: 0.5},
		event{Action: "run", Package: "a", Test: "TestX"},
		event{Action: "pass", Package: "a", Test: "TestX"},
		event{Action: "fail", Package: "a"},
	))
}

func TestMessagesOfAFailureComeFirst(t *testing.T) {
	output := func(test, text string) event {
		return event{Action: "output", Package: "a", Test: test, Output: text}
	}
	require.Equal(t, `--- FAIL: TestX/sub (0.00s)
no newline    x_test.go:1: message
fatal error: deadlock
printed
failed: a TestX/sub
packages: 1, in 0s
`, printed(t,
		event{Action: "run", Package: "a", Test: "TestX"},
		event{Action: "run", Package: "a", Test: "TestX/sub"},
		output("TestX/sub", "printed\n"),
		output("TestX/sub", "=== NAME  TestX/sub\n"),
		output("TestX/sub", "no newline    x_test.go:1: message\n"),
		output("TestX/sub", "fatal error: deadlock\n"),
		event{Action: "fail", Package: "a", Test: "TestX/sub"},
		output("TestX", "--- FAIL: TestX (0.00s)\n"),
		event{Action: "fail", Package: "a", Test: "TestX"},
		event{Action: "fail", Package: "a"},
	))
}

func TestOutputOfTheGoCommandIsPrintedAtOnce(t *testing.T) {
	var out strings.Builder
	newReport(&out).add(".", []byte("go: no such module\n"))
	require.Equal(t, "go: no such module\n", out.String())
}

func TestSilenceIsBrokenByWhatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		r := newReport(&out)
		go r.watch(t.Context())
		printed := func() string {
			synctest.Wait()
			defer out.Reset()
			return out.String()
		}
		r.beginModule(".")
		r.beginModule("fleet")
		time.Sleep(14 * time.Second)
		require.Empty(t, printed())
		time.Sleep(time.Second)
		require.Equal(t, "  15s: module . builds, module fleet builds\n", printed())

		time.Sleep(5 * time.Second)
		addAll(t, r,
			event{Action: "start", Package: "a"},
			event{Action: "run", Package: "a", Test: "TestParallel"},
			event{Action: "pause", Package: "a", Test: "TestParallel"},
			event{Action: "run", Package: "a", Test: "TestX"},
			event{Action: "run", Package: "a", Test: "TestX/sub"},
			event{Action: "start", Package: "b"},
		)
		time.Sleep(10 * time.Second)
		require.Equal(t, "  30s: a runs for 10s (TestX/sub for 10s), b runs for 10s, module fleet builds\n", printed())

		addAll(t, r,
			event{Action: "pass", Package: "a", Test: "TestX/sub"},
			event{Action: "pass", Package: "a", Test: "TestX"},
			event{Action: "output", Package: "b", Output: "ok  \tb\t0.1s\n"},
			event{Action: "pass", Package: "b"},
			event{Action: "cont", Package: "a", Test: "TestParallel"},
		)
		r.endModule("fleet")
		require.Equal(t, "ok  \tb\t0.1s\n", printed())
		time.Sleep(15 * time.Second)
		require.Equal(t, "  45s: a runs for 25s (TestParallel for 15s)\n", printed())
	})
}
