package alert

import (
	"fmt"
	"math"
	"time"
)

// tracker follows one alert of a rule from evaluation to evaluation.
type tracker struct {
	progress
	rule      *Rule
	valueName string // for the summary
	labels    map[string]string
	id        string
	latest    measurement // the latest with data
	missing   missing     // why the latest evaluation had no data
	calls     int64       // of the latest evaluation
	reported  bool        // an evaluation has returned the alert
	silenced  bool        // the state file says that a silence matched
}

// newTracker returns the tracker of the member with the label key, or of the rule if key is empty.
func newTracker(r *Rule, key string) *tracker {
	labels := labelsOf(r, key)
	return &tracker{rule: r, valueName: r.Value.name, labels: labels, id: fingerprint(labels)}
}

// applyMeasurement applies a measurement and reports whether the phase changed.
func (t *tracker) applyMeasurement(m measurement, at time.Time) (changed bool) {
	if m.OK {
		t.latest = m
	}
	t.missing, t.calls = t.rule.missing(m), m.Calls
	return t.set(t.rule.next(t.progress, m, at))
}

// applyAbsence applies the absence of the member, which counts as healthy, and reports whether the
// phase changed.
func (t *tracker) applyAbsence(at time.Time) (changed bool) {
	t.missing = nothingMissing
	return t.set(t.rule.nextAfter(t.progress, false, at))
}

// resolve resolves a firing alert.
func (t *tracker) resolve(at time.Time) (changed bool) {
	p := t.progress
	p.phase, p.resolvedAt = inactive, at
	return t.set(p)
}

func (t *tracker) set(p progress) (changed bool) {
	changed = t.phase != p.phase
	t.progress = p
	return changed
}

// clearedSince returns when the condition of an absent member's alert ceased to hold.
func (t *tracker) clearedSince() time.Time {
	if t.phase == firing {
		return t.clearedAt
	}
	return t.resolvedAt
}

// exists reports whether there is an alert, pending, firing or resolved.
func (t *tracker) exists() bool { return t.phase != inactive || !t.resolvedAt.IsZero() }

// state returns the state of an alert that exists.
func (t *tracker) state() State {
	switch t.phase {
	case pending:
		return Pending
	case firing:
		return Firing
	default:
		return Resolved
	}
}

// noWait is the result of waits if nothing is under way.
const noWait = time.Duration(math.MaxInt64)

// waits returns the Rule.For or Rule.KeepFiring that is under way.
func (t *tracker) waits() time.Duration {
	switch {
	case t.phase == pending:
		return t.rule.For
	case t.phase == firing && !t.clearedAt.IsZero():
		return t.rule.KeepFiring
	}
	return noWait
}

// alert returns the alert at a time. Receivers refuse alerts with times in the future. So if the
// wall clock was set back since the alert began, now replaces the times that lie after it.
func (t *tracker) alert(now time.Time) Alert {
	a := Alert{
		ID: t.id, Rule: t.rule.Name, Key: t.labels[labelKey], Labels: t.labels, State: t.state(),
		Value: t.latest.Value, Calls: t.latest.Calls, Bad: t.latest.Bad,
		ActiveAt: notAfter(t.activeAt, now), StartsAt: notAfter(t.firedAt, now), EndsAt: notAfter(t.resolvedAt, now),
		Summary: t.rule.Annotations["summary"], Annotations: t.rule.Annotations, NoData: t.noDataText(),
	}
	switch {
	case a.Summary != "":
	case a.NoData == "":
		a.Summary = fmt.Sprintf("%s is %.4g, alerts %s", t.valueName, a.Value, t.rule.When)
	default:
		a.Summary = fmt.Sprintf("%s was %.4g, alerts %s; no data now: %s, %s", t.valueName, a.Value, t.rule.When, a.NoData, t.rule.NoData.verdictText())
	}
	return a
}

// notAfter returns the earlier of t and now by the wall clock, which is the only one receivers see.
func notAfter(t, now time.Time) time.Time {
	t, now = t.Round(0), now.Round(0)
	if t.After(now) {
		return now
	}
	return t
}
