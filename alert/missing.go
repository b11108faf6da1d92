package alert

import "fmt"

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
