package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// An event is a line that go test -json prints. See go doc test2json.
type event struct {
	Action  string
	Package string
	Test    string
	Elapsed float64
	Output  string
}

// A report prints the events of several go test processes. Its methods may be called concurrently.
type report struct {
	out   io.Writer
	began time.Time

	mu      sync.Mutex
	printed time.Time               // when the last line was printed
	modules []string                // the directories of those that are tested now
	running map[string]*testPackage // by import path
	ended   []testPackage           // without their tests
	failed  []string                // package and test
	skipped map[string]int          // by reason: the number of tests
}

// A testPackage is a package whose tests run.
type testPackage struct {
	module, path string
	began        time.Time
	elapsed      time.Duration // when it has ended
	output       []string      // of no test
	tests        []*testRun    // in the order of their starts
}

// A testRun is a test, and what it has printed.
type testRun struct {
	name    string
	began   time.Time
	state   string // the last Action: run, pause, cont, pass, fail, skip
	elapsed float64
	output  []string
}

func newReport(out io.Writer) *report {
	now := time.Now()
	return &report{out: out, began: now, printed: now, running: map[string]*testPackage{}, skipped: map[string]int{}}
}

func (r *report) beginModule(dir string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.modules = append(r.modules, dir)
}

func (r *report) endModule(dir string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.modules = slices.DeleteFunc(r.modules, func(m string) bool { return m == dir })
}

// print prints text. The caller holds mu.
func (r *report) print(text string) {
	if text != "" {
		fmt.Fprint(r.out, text)
		r.printed = time.Now()
	}
}

// add handles one line of output of a module. A line that is not an event is printed unchanged.
func (r *report) add(module string, line []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var e event
	if json.Unmarshal(line, &e) != nil {
		r.print(string(line))
		return
	}
	if e.Action == "build-output" {
		r.print(e.Output)
	}
	if e.Package == "" {
		return
	}
	p := r.running[e.Package]
	if p == nil {
		p = &testPackage{module: module, path: e.Package, began: time.Now()}
		r.running[e.Package] = p
	}
	p.add(e)
	switch {
	case e.Action == "skip" && e.Test != "":
		r.skipped[p.skipReason(e.Test)]++
	case e.Test == "" && (e.Action == "pass" || e.Action == "fail" || e.Action == "skip"):
		r.endPackage(p, e)
	}
}

func (p *testPackage) add(e event) {
	if e.Test == "" {
		if e.Action == "output" {
			p.output = append(p.output, e.Output)
		}
		return
	}
	if e.Action == "run" { // for the second time with -count
		p.tests = append(p.tests, &testRun{name: e.Test})
	}
	t := p.test(e.Test)
	if e.Action == "output" {
		t.output = append(t.output, e.Output)
		return
	}
	if e.Action == "run" || e.Action == "cont" {
		t.began = time.Now()
	}
	t.state, t.elapsed = e.Action, e.Elapsed
}

// test returns the last test of this name.
func (p *testPackage) test(name string) *testRun {
	for _, t := range slices.Backward(p.tests) {
		if t.name == name {
			return t
		}
	}
	t := &testRun{name: name}
	p.tests = append(p.tests, t)
	return t
}

var (
	// skipReason matches what t.Skip prints: the place in the code, then the reason.
	skipReason = regexp.MustCompile(`^\s+\S+\.go:\d+: (.+)\n$`)
	// packageSkipped matches what testenv.SkipAll prints if a package runs no test at all.
	packageSkipped = regexp.MustCompile(`^skipped: (.+)\n$`)
)

// skipReason returns why a test was skipped: the last line that it printed from its code.
func (p *testPackage) skipReason(test string) string {
	for _, line := range slices.Backward(p.test(test).output) {
		if m := skipReason.FindStringSubmatch(line); m != nil {
			return m[1]
		}
	}
	return p.path + " " + test
}

// endPackage prints the result of a package: the line of its result, and what failed above it.
func (r *report) endPackage(p *testPackage, e event) {
	delete(r.running, p.path)
	for _, line := range p.output {
		if m := packageSkipped.FindStringSubmatch(line); m != nil {
			r.skipped[m[1]]++
		}
		if strings.HasPrefix(line, "ok ") {
			r.print(line)
		}
	}
	if e.Action == "fail" {
		r.print(p.failure())
		r.failed = append(r.failed, p.failedNames()...)
	}
	r.ended = append(r.ended, testPackage{path: p.path, elapsed: time.Duration(e.Elapsed * float64(time.Second))})
}

// silence is how long nothing may be printed before a line names what still runs.
const silence = 15 * time.Second

// watch prints a line that names what runs after each silence, until ctx ends.
func (r *report) watch(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			r.mu.Lock()
			if time.Since(r.printed) >= silence {
				r.print(fmt.Sprintf("%4.0fs: %s\n", time.Since(r.began).Seconds(), strings.Join(r.busy(), ", ")))
			}
			r.mu.Unlock()
		}
	}
}

// busy returns what runs: packages with their times and a test of each, and the modules of which
// no package runs.
func (r *report) busy() (list []string) {
	for _, dir := range r.modules {
		builds := true
		for _, path := range slices.Sorted(maps.Keys(r.running)) {
			if p := r.running[path]; p.module == dir {
				list = append(list, p.progress())
				builds = false
			}
		}
		if builds {
			list = append(list, "module "+dir+" builds")
		}
	}
	return list
}

// progress says how long the package has run, and which of its tests has run longest.
func (p *testPackage) progress() string {
	var longest *testRun
	for _, t := range p.tests {
		// Of a test and its subtests, the subtest is the one to name.
		if (t.state == "run" || t.state == "cont") &&
			(longest == nil || strings.HasPrefix(t.name, longest.name+"/") || t.began.Before(longest.began)) {
			longest = t
		}
	}
	text := fmt.Sprintf("%s runs for %.0fs", p.path, time.Since(p.began).Seconds())
	if longest != nil {
		text += fmt.Sprintf(" (%s for %.0fs)", longest.name, time.Since(longest.began).Seconds())
	}
	return text
}

// shown is the number of slowest packages in the summary.
const shown = 5

// printSummary prints the reasons to skip tests, the slowest packages, and the names of the failed
// tests.
func (r *report) printSummary() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, reason := range slices.Sorted(maps.Keys(r.skipped)) {
		r.print(fmt.Sprintf("skipped %d: %s\n", r.skipped[reason], reason))
	}
	slices.SortStableFunc(r.ended, func(a, b testPackage) int { return cmp.Compare(b.elapsed, a.elapsed) })
	for _, p := range r.ended[:min(shown, len(r.ended))] {
		if p.elapsed >= time.Second {
			r.print(fmt.Sprintf("slowest: %5.1fs %s\n", p.elapsed.Seconds(), p.path))
		}
	}
	for _, name := range r.failed {
		r.print("failed: " + name + "\n")
	}
	r.print(fmt.Sprintf("packages: %d, in %.0fs\n", len(r.ended), time.Since(r.began).Seconds()))
}
