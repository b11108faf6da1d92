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

// State is the state of an alert, as Prometheus and Alertmanager write it.
type State string

// The states of an alert. While the condition does not hold and did not hold recently, there is no
// alert.
const (
	Pending  State = "pending"  // the condition holds, but not yet for as long as Rule.For
	Firing   State = "firing"   // the condition has held for Rule.For
	Resolved State = "resolved" // the alert was firing and no longer is
)

// phase is a state of the state machine behind an alert.
type phase uint8

const (
	inactive phase = iota // no alert, or a resolved one
	pending
	firing
	phases // the number of phases
)

// String returns the phase as an attribute value of metrics.
func (p phase) String() string { return [phases]string{"inactive", "pending", "firing"}[p] }

// retention is how long a resolved alert is remembered, as in Prometheus.
const retention = 15 * time.Minute

// progress is the state of one alert that a rule keeps between evaluations.
type progress struct {
	phase      phase
	bad        bool // the latest verdict
	activeAt   time.Time
	firedAt    time.Time
	clearedAt  time.Time // while firing: when the condition ceased to hold; zero while it holds
	resolvedAt time.Time // after firing, until the retention has passed
}

// next returns the progress after a measurement.
func (r *Rule) next(p progress, m measurement, at time.Time) progress {
	return r.nextAfter(p, r.verdict(p, m), at)
}

// nextAfter returns the progress after a verdict. It works like AlertingRule.Eval of Prometheus,
// where the verdict is bad if the expression returned a result.
func (r *Rule) nextAfter(p progress, bad bool, at time.Time) progress {
	switch {
	case bad && p.phase == inactive:
		p = progress{phase: pending, activeAt: at}
	case bad:
		p.clearedAt = time.Time{}
	case p.phase == firing:
		p = r.nextCleared(p, at)
	case p.phase == pending, at.Sub(p.resolvedAt) > retention:
		p = progress{}
	}
	if bad && p.phase == pending && at.Sub(p.activeAt) >= r.For {
		p.phase, p.firedAt = firing, at
	}
	p.bad = bad
	return p
}

// nextCleared resolves a firing alert once its condition has not held for KeepFiring.
func (r *Rule) nextCleared(p progress, at time.Time) progress {
	if p.clearedAt.IsZero() {
		p.clearedAt = at
	}
	if at.Sub(p.clearedAt) >= r.KeepFiring {
		p.phase, p.resolvedAt = inactive, at
	}
	return p
}

// verdict reports whether the measurement is bad for an alert with the state p.
func (r *Rule) verdict(p progress, m measurement) bool {
	if r.missing(m) != nothingMissing {
		return r.NoData == Fire || r.NoData != Resolve && p.bad
	}
	if p.phase == firing && r.Resolve.set {
		return !r.Resolve.holds(m.Value)
	}
	return r.When.holds(m.Value) && m.Bad >= r.MinBad
}
