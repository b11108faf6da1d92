package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// rule is one alerting rule, in the terms of Prometheus. Durations are rounded up to whole
// milliseconds.
type rule struct {
	Alert       string
	Expr        string        // in PromQL
	For         time.Duration // how long Expr has to hold before the alert fires
	KeepFiring  time.Duration // 0 for not at all; requires Prometheus 2.42
	Labels      map[string]string
	Annotations map[string]string
}

// group is a named list of rules, which Prometheus evaluates together, in their order.
type group struct {
	name  string
	rules []rule
}

// write writes a rules file in YAML. Strings are quoted as in JSON, which is valid YAML.
func write(w io.Writer, groups ...group) error {
	var b strings.Builder
	b.WriteString("# Written by weir-rules.\ngroups:\n")
	for _, g := range groups {
		fmt.Fprintf(&b, "- name: %s\n  rules:\n", quoted(g.name))
		for _, r := range g.rules {
			r.write(&b)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r rule) write(b *strings.Builder) {
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

// quoted returns s as a JSON string. It does not escape <, > and &, so that the file stays
// readable.
func quoted(s string) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(s) // encoding a string cannot fail
	return strings.TrimSuffix(b.String(), "\n")
}

// promDuration returns d in the syntax of Prometheus.
func promDuration(d time.Duration) string {
	if d%time.Second == 0 {
		return fmt.Sprintf("%ds", d/time.Second)
	}
	const unit = time.Millisecond
	return fmt.Sprintf("%dms", (d+unit-1)/unit)
}
