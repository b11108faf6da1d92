package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// failure returns what a failed package printed, in the order in which a reader needs it: each
// failed test with its messages first, then what others printed, then the line of the result.
func (p *testPackage) failure() string {
	var text strings.Builder
	var others []string
	for _, t := range p.tests {
		messages, rest := t.parts()
		switch {
		case !t.isFault():
			others = append(others, rest...)
		case len(messages)+len(rest) > 0 || !p.hasFaultBelow(t):
			text.WriteString(t.header() + strings.Join(messages, "") + strings.Join(rest, ""))
		}
	}
	if len(others) > 0 {
		text.WriteString("--- printed by tests that did not fail:\n" + strings.Join(others, ""))
	}
	for _, line := range p.output {
		if line != "PASS\n" && line != "FAIL\n" {
			text.WriteString(line)
		}
	}
	return text.String()
}

// failedNames returns the failed tests of the package, without those that failed only because a
// subtest did, or the package itself if there is none.
func (p *testPackage) failedNames() (names []string) {
	for _, t := range p.tests {
		if t.isFault() && !p.hasFaultBelow(t) {
			names = append(names, p.path+" "+t.name)
		}
	}
	if names == nil {
		names = []string{p.path}
	}
	return names
}

// isFault reports whether a test of a failed package has failed, or has not ended because the
// process did.
func (t *testRun) isFault() bool { return t.state != "pass" && t.state != "skip" }

func (p *testPackage) hasFaultBelow(t *testRun) bool {
	return slices.ContainsFunc(p.tests, func(sub *testRun) bool { return sub.isFault() && strings.HasPrefix(sub.name, t.name+"/") })
}

func (t *testRun) header() string {
	if t.state == "fail" {
		return fmt.Sprintf("--- FAIL: %s (%.2fs)\n", t.name, t.elapsed)
	}
	return fmt.Sprintf("--- FAIL: %s (did not end)\n", t.name)
}

var (
	// frame matches the lines that say only that a test began, continued or ended.
	frame = regexp.MustCompile(`^ *(=== (RUN|PAUSE|CONT|NAME)|--- (PASS|FAIL|SKIP):) `)
	// logged matches the first line of what t.Error or t.Log prints, maybe after other output
	// without a line end. Further lines are indented by 8 spaces.
	logged = regexp.MustCompile(`(^|\S) {4}\S+\.go:\d+: `)
)

// parts divides the output of the test into its messages and the rest. The messages are what the
// test has logged, and the reason of a panic. If testify has reported failures, only they are
// messages.
func (t *testRun) parts() (messages, rest []string) {
	byTestify := slices.ContainsFunc(t.output, isTestify)
	for lines := t.output; len(lines) > 0; {
		n, message := 1, false
		switch line := lines[0]; {
		case frame.MatchString(line):
			lines = lines[1:]
			continue
		case logged.MatchString(line):
			n += prefix(lines[1:], func(s string) bool { return strings.HasPrefix(s, "        ") })
			message = !byTestify || slices.ContainsFunc(lines[:n], isTestify)
		case strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: "):
			n += prefix(lines[1:], func(s string) bool { return s != "\n" })
			message = true
		}
		if message {
			messages = append(messages, lines[:n]...)
		} else {
			rest = append(rest, lines[:n]...)
		}
		lines = lines[n:]
	}
	return messages, rest
}

func isTestify(line string) bool { return strings.Contains(line, "\tError Trace:\t") }

// prefix returns the number of lines at the start for which ok reports true.
func prefix(lines []string, ok func(string) bool) int {
	if i := slices.IndexFunc(lines, func(s string) bool { return !ok(s) }); i >= 0 {
		return i
	}
	return len(lines)
}
