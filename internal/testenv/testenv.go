// Package testenv finds the programs that tests start, such as Redis, and decides what happens to a
// test whose program is missing.
//
// The test is skipped, and the reason names the program. If the environment variable CI is "true"
// the test fails instead, so that CI cannot pass without it. With the flag -short the test is
// always skipped. Run make deps to install the programs.
package testenv

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TB is the part of testing.TB that this package uses.
type TB interface {
	Helper()
	Fatal(args ...any)
	Skip(args ...any)
}

// Program returns the path of the first of the programs that is installed. If there is none, it
// skips the test, or fails it in CI.
func Program(t TB, names ...string) string {
	t.Helper()
	path, reason := findProgram(names)
	if reason != "" {
		endTest(t, reason)
	}
	return path
}

// Missing skips the test, or fails it in CI, because what it needs is not installed.
func Missing(t TB, what string) {
	t.Helper()
	endTest(t, notInstalled(what))
}

// SkipAll reports whether the tests of a whole package cannot run for lack of a program, and the
// exit status for TestMain to return then. It writes the reason to out. The flags must have been
// parsed.
func SkipAll(out io.Writer, names ...string) (status int, skip bool) {
	_, reason := findProgram(names)
	switch {
	case reason == "":
		return 0, false
	case mustNotSkip():
		_, _ = fmt.Fprintf(out, "FAIL: %s\n", reason)
		return 1, true
	default:
		_, _ = fmt.Fprintf(out, "skipped: %s\n", reason)
		return 0, true
	}
}

// findProgram returns the path of the first of the programs that is installed, or the reason to
// skip the test.
func findProgram(names []string) (path, reason string) {
	if testing.Short() {
		return "", filepath.Base(names[0]) + " is needed, which -short leaves out: make test runs the test"
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path, ""
		}
	}
	return "", notInstalled(filepath.Base(names[0]))
}

func notInstalled(what string) string { return what + " is not installed: run make deps" }

// endTest ends the test: it fails in CI, and is skipped elsewhere.
func endTest(t TB, reason string) {
	t.Helper()
	if mustNotSkip() {
		t.Fatal(reason)
	} else {
		t.Skip(reason)
	}
}

// Repeat returns how often a test repeats a search: often if Soak, and seldom otherwise.
func Repeat(often, seldom int) int {
	if Soak() {
		return often
	}
	return seldom
}

// Soak reports whether long tests run whole, as in make soak and make test-long, which set
// WEIR_SOAK to "true".
func Soak() bool { return os.Getenv("WEIR_SOAK") == "true" }

// mustNotSkip reports whether a missing program is a fault of the machine.
func mustNotSkip() bool { return os.Getenv("CI") == "true" && !testing.Short() }
