package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// An event is a line that go test -json prints. See go doc test2json.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
}

// A report prints the events of several go test processes. Its methods may be called concurrently.
type report struct {
	out io.Writer

	mu      sync.Mutex
	output  map[string][]event // by package: the output so far
	skipped map[string]int     // by reason: the number of tests
}

// add handles one line of output. A line that is not an event is printed unchanged.
func (r *report) add(line []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var e event
	if json.Unmarshal(line, &e) != nil {
		fmt.Fprintf(r.out, "%s", line)
		return
	}
	switch {
	case e.Action == "build-output":
		fmt.Fprint(r.out, e.Output)
	case e.Action == "output":
		if r.output == nil {
			r.output = map[string][]event{}
		}
		r.output[e.Package] = append(r.output[e.Package], e)
	case e.Action == "skip" && e.Test != "":
		r.skip(e)
	case e.Test == "" && (e.Action == "pass" || e.Action == "fail" || e.Action == "skip"):
		r.printPackage(e)
	}
}

var (
	// skipReason matches what t.Skip prints: the place in the code, then the reason.
	skipReason = regexp.MustCompile(`^\s+\S+\.go:\d+: (.+)\n$`)
	// packageSkipped matches what testenv.SkipAll prints if a package runs no test at all.
	packageSkipped = regexp.MustCompile(`^skipped: (.+)\n$`)
)

// skip counts a skipped test under its reason, the last line that the test printed from its code.
func (r *report) skip(e event) {
	reason := e.Package + " " + e.Test
	for _, o := range r.output[e.Package] {
		if m := skipReason.FindStringSubmatch(o.Output); o.Test == e.Test && m != nil {
			reason = m[1]
		}
	}
	r.countSkipped(reason)
}

func (r *report) countSkipped(reason string) {
	if r.skipped == nil {
		r.skipped = map[string]int{}
	}
	r.skipped[reason]++
}

// printPackage prints the result of a package: all its output if it failed, else the line of the
// result.
func (r *report) printPackage(e event) {
	for _, o := range r.output[e.Package] {
		if m := packageSkipped.FindStringSubmatch(o.Output); m != nil && o.Test == "" {
			r.countSkipped(m[1])
		}
		isResult := strings.HasPrefix(o.Output, "ok ") || strings.HasPrefix(o.Output, "FAIL\t")
		if o.Test == "" && isResult || e.Action == "fail" && !isNoise(o.Output) {
			fmt.Fprint(r.out, o.Output)
		}
	}
	delete(r.output, e.Package)
}

// isNoise reports whether the line only says that a test began, continued or passed.
func isNoise(line string) bool {
	line = strings.TrimLeft(line, " ")
	for _, prefix := range []string{"=== RUN", "=== PAUSE", "=== CONT", "=== NAME", "--- PASS"} {
		if strings.HasPrefix(line, prefix) {
			return true
		}
	}
	return false
}

// printSkipped prints a line for each reason to skip tests.
func (r *report) printSkipped() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, reason := range slices.Sorted(maps.Keys(r.skipped)) {
		fmt.Fprintf(r.out, "skipped %d: %s\n", r.skipped[reason], reason)
	}
}
