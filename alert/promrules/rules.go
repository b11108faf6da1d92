package promrules

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// Group is a group of rules, which Prometheus evaluates together. The names of the
// groups in a file have to differ.
type Group struct {
	Name  string // of the group; no two in a file may have the same
	Rules []Rule // in the order in which Prometheus evaluates them
}

// Rule is one alerting rule. Times are rounded up to whole milliseconds.
type Rule struct {
	Alert       string            // the name of the alert
	Expr        string            // in PromQL
	For         time.Duration     // 0 for at once
	KeepFiring  time.Duration     // 0 for not at all; needs Prometheus 2.42
	Labels      map[string]string // may be nil
	Annotations map[string]string // may be nil
}

// Write writes a rules file in YAML. Strings are written as JSON has them, which is
// YAML too. The error is the writer's.
func Write(w io.Writer, groups ...Group) error {
	var b strings.Builder
	b.WriteString("groups:\n")
	for _, g := range groups {
		fmt.Fprintf(&b, "- name: %s\n  rules:\n", quoted(g.Name))
		for _, r := range g.Rules {
			r.write(&b)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r Rule) write(b *strings.Builder) {
	fmt.Fprintf(b, "  - alert: %s\n    expr: %s\n", quoted(r.Alert), quoted(r.Expr))
	if r.For > 0 {
		fmt.Fprintf(b, "    for: %s\n", promDuration(r.For))
	}
	if r.KeepFiring > 0 {
		fmt.Fprintf(b, "    keep_firing_for: %s\n", promDuration(r.KeepFiring))
	}
	writeMap(b, "labels", r.Labels)
	writeMap(b, "annotations", r.Annotations)
}

func writeMap(b *strings.Builder, name string, pairs map[string]string) {
	if len(pairs) == 0 {
		return
	}
	fmt.Fprintf(b, "    %s:\n", name)
	for _, key := range slices.Sorted(maps.Keys(pairs)) {
		fmt.Fprintf(b, "      %s: %s\n", key, quoted(pairs[key]))
	}
}

// quoted leaves <, > and & as they are, for whoever reads the file.
func quoted(s string) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(s) // a string and a builder: neither fails
	return strings.TrimSuffix(b.String(), "\n")
}

// promDuration writes d as Prometheus reads it.
func promDuration(d time.Duration) string {
	if d%time.Second == 0 {
		return fmt.Sprintf("%ds", d/time.Second)
	}
	const unit = time.Millisecond
	return fmt.Sprintf("%dms", (d+unit-1)/unit)
}
