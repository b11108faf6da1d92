package promrules

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Rule is one alerting rule. Durations are rounded up to whole milliseconds.
type Rule struct {
	// Alert is the name of the alert. Required.
	Alert string
	// Expr is the condition in PromQL. Required.
	Expr string
	// For is how long Expr has to hold before the alert fires. Default 0, at once.
	For time.Duration
	// Labels are part of the alert's identity. Default none.
	Labels map[string]string
	// Annotations are texts for people, such as "summary" and "runbook". Default none.
	Annotations map[string]string

	keepFiring time.Duration // 0 for not at all; requires Prometheus 2.42
}

// Write writes a rules file in YAML with the groups sorted by name. Prometheus evaluates the rules
// of a group together, in their order. Strings are quoted as in JSON, which is valid YAML. If
// Prometheus would refuse a rule, Write writes nothing and returns an error; it does not check
// expressions.
func Write(w io.Writer, groups map[string][]Rule) error {
	var b strings.Builder
	var errs []error
	b.WriteString("groups:\n")
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		fmt.Fprintf(&b, "- name: %s\n  rules:\n", quoted(name))
		if name == "" {
			errs = append(errs, errors.New("promrules: the name of a group is empty"))
		}
		for _, r := range groups[name] {
			errs = append(errs, r.validate())
			r.write(&b)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	_, err := io.WriteString(w, b.String())
	return err
}

var labelName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

func (r Rule) validate() error {
	var errs []error
	fault := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("promrules: rule %.100q: "+format, append([]any{r.Alert}, args...)...))
	}
	if r.Alert == "" || r.Expr == "" {
		fault("Alert is %.100q and Expr %.100q, must not be empty", r.Alert, r.Expr)
	}
	if r.For < 0 {
		fault("For is %v, must be at least 0", r.For)
	}
	for field, pairs := range map[string]map[string]string{"Labels": r.Labels, "Annotations": r.Annotations} {
		for _, name := range slices.Sorted(maps.Keys(pairs)) {
			if !labelName.MatchString(name) || name == "__name__" {
				fault("%s has %.200q, must be letters, digits and underscores, not starting with a digit", field, name)
			}
		}
	}
	return errors.Join(errs...)
}

func (r Rule) write(b *strings.Builder) {
	fmt.Fprintf(b, "  - alert: %s\n    expr: %s\n", quoted(r.Alert), quoted(r.Expr))
	if r.For > 0 {
		fmt.Fprintf(b, "    for: %s\n", promDuration(r.For))
	}
	if r.keepFiring > 0 {
		fmt.Fprintf(b, "    keep_firing_for: %s\n", promDuration(r.keepFiring))
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
