package alert

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
	"unicode/utf8"
)

// Rule says which value to look at, when the value is bad, and for how long it has to be bad
// before an alert fires. Rules are plain values without state, and one rule may be given to several
// monitors.
type Rule struct {
	// Name is unique among the rules of a monitor, and stays the same over the life of the service:
	// receivers tell alerts apart by it. It takes at most 1,024 bytes, as Severity and the values of
	// Labels do. Required.
	Name string
	// Value is what the rule looks at. Required.
	Value Value
	// When is the condition under which the value is bad. Required.
	When Condition
	// Resolve is the condition under which a firing alert resolves: an alert that fires above 5 %
	// may resolve only below 2 %. It points the other way than When and does not overlap with it.
	// Default as soon as When no longer holds.
	Resolve Condition
	// MinCalls is how many calls the value has to be made of. With fewer calls there is no data.
	// It is only for values that count calls. Default 0, no minimum.
	MinCalls int64
	// MinBad is how many bad calls there have to be for When to hold. It is only for values that
	// count bad calls. Default 0, no minimum.
	MinBad int64
	// For is how long the condition has to hold, at every evaluation, before the alert fires.
	// Default 0, at once.
	For time.Duration
	// KeepFiring is how long the alert continues to fire after the condition has ceased to hold.
	// Default 0, not at all.
	KeepFiring time.Duration
	// NoData is the verdict where the value has no data. Default KeepLast.
	NoData NoData
	// Severity is a text for the receivers, such as "page" or "ticket". It is the label "severity".
	// Default none.
	Severity string
	// Labels are part of the identity of each alert of the rule, and every receiver gets them. At
	// most 32. A name has up to 128 letters, digits and underscores, and is not "alertname",
	// "severity" or "key". A label "instance" takes the place of Config.Instance. Default none.
	Labels map[string]string
	// Annotations are texts for the people who read the alert, such as "description" and "runbook".
	// They are not part of its identity, and every receiver gets them. At most 16, of up to 4,096
	// bytes each, with names as in Labels. The annotation "summary" is the Summary of alerts that
	// Describe does not write. There is none of the name "value", which is the monitor's own.
	// Default none.
	Annotations map[string]string
	// Describe returns the Summary of an alert: one line that tells a human what is wrong. It is
	// called at evaluations, within the rule's budget. Default the annotation "summary", or else the
	// value and its condition.
	Describe func(Alert) string
}

// validate returns an error that names every field that makes no sense, and nil
// where there is none.
func (r Rule) validate() error {
	var errs []error
	fault := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("alert: rule %.100q: "+format, append([]any{r.Name}, args...)...))
	}
	if r.Name == "" {
		fault("Name is empty")
	}
	r.checkText(fault)
	r.checkTimes(fault)
	if r.Value.start == nil {
		fault("Value is not set")
	} else {
		r.checkValue(fault)
	}
	return errors.Join(errs...)
}

type faultFunc func(format string, args ...any)

func (r Rule) checkText(fault faultFunc) {
	if !utf8.ValidString(r.Name) || !utf8.ValidString(r.Severity) {
		fault("Name is %q and Severity %q, must be UTF-8", r.Name, r.Severity)
	}
	if len(r.Name) > maxLabel || len(r.Severity) > maxLabel {
		fault("Name takes %d bytes and Severity %d, must take at most %d", len(r.Name), len(r.Severity), maxLabel)
	}
	if len(r.Labels) > maxLabels {
		fault("Labels has %d labels, must have at most %d", len(r.Labels), maxLabels)
	}
	if len(r.Annotations) > maxAnnotations {
		fault("Annotations has %d annotations, must have at most %d", len(r.Annotations), maxAnnotations)
	}
	checkPairs("Labels", r.Labels, maxLabel, []string{labelRule, labelSeverity, labelKey}, fault)
	checkPairs("Annotations", r.Annotations, maxAnnotation, []string{"value"}, fault)
}

// checkPairs checks labels or annotations, whose values may have up to most bytes.
func checkPairs(field string, pairs map[string]string, most int, reserved []string, fault faultFunc) {
	for _, name := range slices.Sorted(maps.Keys(pairs)) {
		value := pairs[name]
		switch {
		case slices.Contains(reserved, name):
			fault("%s has %q, which is set by the monitor", field, name)
		case !labelName.MatchString(name) || len(name) > maxLabelName:
			fault("%s has %.200q, must be up to %d letters, digits and underscores, with no digit in front", field, name, maxLabelName)
		case len(value) > most:
			fault("%s[%q] takes %d bytes, must take at most %d", field, name, len(value), most)
		case value == "" || !utf8.ValidString(value):
			fault("%s[%q] is %q, must be UTF-8 and not empty", field, name, value)
		}
	}
}

func (r Rule) checkTimes(fault faultFunc) {
	if r.For < 0 {
		fault("For is %v, must be at least 0", r.For)
	}
	if r.KeepFiring < 0 {
		fault("KeepFiring is %v, must be at least 0", r.KeepFiring)
	}
	if r.MinCalls < 0 {
		fault("MinCalls is %d, must be at least 0", r.MinCalls)
	}
	if r.MinBad < 0 {
		fault("MinBad is %d, must be at least 0", r.MinBad)
	}
	if !r.NoData.valid() {
		fault("NoData is %.60q, must be %q, %q or %q", r.NoData, KeepLast, Resolve, Fire)
	}
}

func (r Rule) checkValue(fault faultFunc) {
	v := r.Value
	for _, err := range v.errs {
		fault("Value: %w", err)
	}
	if r.MinCalls > 0 && !v.counts {
		fault("MinCalls is %d, but the %s counts no calls", r.MinCalls, v.name)
	}
	if r.MinBad > 0 && !v.countsBad {
		fault("MinBad is %d, but the %s counts no bad calls", r.MinBad, v.name)
	}
	switch {
	case !r.When.set:
		fault("When is not set")
	case !r.When.finite():
		fault("When is %s, must be finite", r.When)
	case !r.When.reachable(v.low, v.high):
		fault("When is %s, but the %s lies between %.6g and %.6g: the rule could never fire", r.When, v.name, v.low, v.high)
	case r.Resolve.set:
		r.checkResolve(fault)
	}
}

func (r Rule) checkResolve(fault faultFunc) {
	switch {
	case !r.Resolve.finite() || !r.When.clearOf(r.Resolve):
		fault("Resolve is %s, must be finite, point the other way than When, which is %s, and not overlap with it",
			r.Resolve, r.When)
	case !r.Resolve.reachable(r.Value.low, r.Value.high):
		fault("Resolve is %s, but the %s lies between %.6g and %.6g: the rule could never resolve",
			r.Resolve, r.Value.name, r.Value.low, r.Value.high)
	}
}
