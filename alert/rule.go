package alert

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
	"unicode/utf8"
)

// Rule says which value to watch, when the value is bad, and how long it has to be bad before an
// alert fires. Rules are plain values without state. One rule may be given to several monitors.
type Rule struct {
	// Name identifies the rule to receivers, in at most 1,024 bytes. It must be unique among the
	// rules of a monitor and should not change over the life of the service. Required.
	Name string
	// Value is the number that the rule watches. Required.
	Value Value
	// When is the condition under which the value is bad. Required.
	When Condition
	// Resolve is the condition under which a firing alert resolves. For example, an alert that
	// fires above 5 % may resolve only below 2 %. If When is an Above condition, Resolve must be a
	// Below condition, and the reverse. No value may meet both conditions. Default none: the alert
	// resolves as soon as When no longer holds.
	Resolve Condition
	// MinCalls is the least number of calls the value is computed from. With fewer calls there is
	// no data. MinCalls requires a value that counts calls. Default 0, no minimum.
	MinCalls int64
	// MinBad is the least number of bad calls for When to hold. MinBad requires a value that counts
	// bad calls. Default 0, no minimum.
	MinBad int64
	// For is how long When has to hold, at every evaluation, before the alert fires. Default 0, at
	// once.
	For time.Duration
	// KeepFiring is how long the alert keeps firing after its condition no longer holds. Default 0,
	// not at all.
	KeepFiring time.Duration
	// NoData is the verdict when the value has no data. Default KeepLast.
	NoData NoData
	// Severity is a word for the receivers, such as "page" or "ticket", in at most 1,024 bytes. It
	// becomes the label "severity". Default none.
	Severity string
	// Labels are part of the identity of each alert of the rule and are sent to every receiver: at
	// most 32, with values of at most 1,024 bytes. A name has up to 128 letters, digits and
	// underscores, and is not "alertname", "severity" or "key". A label "instance" replaces
	// Config.Instance. Default none.
	Labels map[string]string
	// Annotations are texts for the people who read the alert, such as "description" and "runbook".
	// They are sent to every receiver and are not part of the alert's identity. There are at most
	// 16, of up to 4,096 bytes each, with names as in Labels. The name "value" is reserved. The
	// annotation "summary" is the Summary of the alert if Describe is nil. Default none.
	Annotations map[string]string
	// Describe returns the Summary of an alert. It is called at evaluations, within Config.Budget.
	// Default the annotation "summary", or else the value and its condition.
	Describe func(Alert) string
}

// validate returns an error that names every invalid field, or nil.
func (r Rule) validate() error {
	var errs []error
	fault := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("alert: rule %.100q: "+format, append([]any{r.Name}, args...)...))
	}
	if r.Name == "" {
		fault("Name is empty")
	}
	r.checkText(fault)
	r.checkNumbers(fault)
	if r.Value.start == nil {
		fault("Value is not set")
	} else {
		r.checkValue(fault)
	}
	return errors.Join(errs...)
}

// faultFunc adds an error to those of a rule.
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

// checkPairs checks labels or annotations, whose values may take up to maxValue bytes.
func checkPairs(field string, pairs map[string]string, maxValue int, reserved []string, fault faultFunc) {
	for _, name := range slices.Sorted(maps.Keys(pairs)) {
		value := pairs[name]
		switch {
		case slices.Contains(reserved, name):
			fault("%s has %q, which is set by the monitor", field, name)
		case !labelName.MatchString(name) || len(name) > maxLabelName:
			fault("%s has %.200q, must be up to %d letters, digits and underscores, not starting with a digit", field, name, maxLabelName)
		case len(value) > maxValue:
			fault("%s[%q] takes %d bytes, must take at most %d", field, name, len(value), maxValue)
		case value == "" || !utf8.ValidString(value):
			fault("%s[%q] is %q, must be UTF-8 and not empty", field, name, value)
		}
	}
}

func (r Rule) checkNumbers(fault faultFunc) {
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
	case !r.Resolve.finite() || !r.When.excludes(r.Resolve):
		fault("Resolve is %s, must be finite, point the other way than When, which is %s, and not overlap with it",
			r.Resolve, r.When)
	case !r.Resolve.reachable(r.Value.low, r.Value.high):
		fault("Resolve is %s, but the %s lies between %.6g and %.6g: the rule could never resolve",
			r.Resolve, r.Value.name, r.Value.low, r.Value.high)
	}
}

// Condition compares a value with a threshold. The zero Condition never holds.
type Condition struct {
	set, below bool
	threshold  float64
}

// Above holds for values greater than the threshold.
func Above(threshold float64) Condition { return Condition{set: true, threshold: threshold} }

// Below holds for values less than the threshold.
func Below(threshold float64) Condition {
	return Condition{set: true, below: true, threshold: threshold}
}

// String describes the condition, as in "above 0.05".
func (c Condition) String() string {
	switch {
	case !c.set:
		return "never"
	case c.below:
		return fmt.Sprintf("below %v", c.threshold)
	}
	return fmt.Sprintf("above %v", c.threshold)
}

// holds reports whether value meets the condition. NaN meets none.
func (c Condition) holds(value float64) bool {
	switch {
	case !c.set:
		return false
	case c.below:
		return value < c.threshold
	}
	return value > c.threshold
}

func (c Condition) finite() bool { return !math.IsNaN(c.threshold) && !math.IsInf(c.threshold, 0) }

// reachable reports whether some value between low and high meets the condition.
func (c Condition) reachable(low, high float64) bool {
	if c.below {
		return low < c.threshold
	}
	return high > c.threshold
}

// excludes reports whether c and d point in opposite directions and no value meets both.
func (c Condition) excludes(d Condition) bool {
	if c.below == d.below {
		return false
	}
	if c.below {
		c, d = d, c
	}
	return d.threshold <= c.threshold
}

// worse reports whether a is closer than b to meeting the condition, or further past the threshold.
func (c Condition) worse(a, b float64) bool {
	if c.below {
		return a < b
	}
	return a > b
}

// NoData is the verdict of an evaluation without data. The zero value means KeepLast.
type NoData string

const (
	// KeepLast repeats the previous verdict: a pending alert keeps aging, and a firing alert keeps
	// firing.
	KeepLast NoData = "keep-last"
	// Resolve means that the condition does not hold.
	Resolve NoData = "resolve"
	// Fire means that the condition holds.
	Fire NoData = "fire"
)

func (n NoData) valid() bool { return n == "" || n == KeepLast || n == Resolve || n == Fire }

// missing is why an evaluation has no data for an alert.
type missing uint8

const (
	nothingMissing missing = iota
	noValue                // a Gauge returned NaN
	noCalls                // no calls in the span
	fewCalls               // fewer calls than Rule.MinCalls
	tooEarly               // the monitor has not run for long enough
	failedRule             // the code of the rule failed
	missings               // the number of reasons
)

// String returns the reason as the attribute of metrics.
func (m missing) String() string {
	return [missings]string{"", "no_value", "no_calls", "few_calls", "too_early", "error"}[m]
}

// missing returns why the measurement is not enough for a verdict, or nothingMissing. A partial sum
// is too low, so it does not show that a value is below a threshold.
func (r *Rule) missing(m measurement) missing {
	switch {
	case !m.OK && m.why == nothingMissing:
		return noValue
	case !m.OK:
		return m.why
	case m.Calls < r.MinCalls:
		return fewCalls
	case m.partial && r.When.below:
		return tooEarly
	}
	return nothingMissing
}

// text describes the reason, or is empty if nothing is missing.
func (m missing) text() string {
	return [missings]string{
		"", "no value", "no calls in the span", "fewer calls than MinCalls", "the monitor has not run for a whole span", "the rule failed",
	}[m]
}

// noDataText says why the latest evaluation had no data for the alert. It is empty if there was
// data.
func (t *tracker) noDataText() string {
	if t.missing == fewCalls {
		return fmt.Sprintf("%d calls in the span, fewer than MinCalls, %d", t.calls, t.rule.MinCalls)
	}
	return t.missing.text()
}

// noDataText says why the latest evaluation of the rule had no data for any alert, and what verdict
// follows. It is empty if there was data for some alert.
func (s *ruleStats) noDataText() string {
	var alerts, without int64
	for _, n := range s.alerts {
		alerts += n
	}
	why := nothingMissing
	for reason := noValue; reason < missings; reason++ {
		without += s.missing[reason]
		if s.missing[reason] > s.missing[why] || why == nothingMissing && s.missing[reason] > 0 {
			why = reason
		}
	}
	switch {
	case s.at.IsZero(), s.hasValue && without < alerts:
		return ""
	case why == nothingMissing:
		return "no members"
	}
	return why.text() + ", " + s.noData.verdictText()
}

// verdictText says what an evaluation without data means for the alert.
func (n NoData) verdictText() string {
	switch n {
	case Fire:
		return "which counts as bad"
	case Resolve:
		return "which counts as good"
	case KeepLast:
	}
	return "keeping the last verdict"
}
