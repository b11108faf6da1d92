package alert

import (
	"fmt"
	"time"
)

// track follows one alert of a rule from evaluation to evaluation.
type track struct {
	memory
	rule   *Rule
	name   string // what the figure is
	labels map[string]string
	id     string
	latest measurement // that had data
}

// newTrack follows the member whose key has the label.
func newTrack(r *Rule, label string) *track {
	labels := labelsOf(r, label)
	return &track{rule: r, name: r.Value.name, labels: labels, id: fingerprint(labels)}
}

// see takes a sample in, and says whether the state has changed.
func (t *track) see(s measurement, at time.Time) (changed bool) {
	if s.OK {
		t.latest = s
	}
	return t.move(t.rule.step(t.memory, s, at))
}

// miss takes in that the member is gone: nothing is wrong with what is not there.
func (t *track) miss(at time.Time) (changed bool) {
	return t.move(t.rule.advance(t.memory, false, at))
}

// end resolves a firing alert.
func (t *track) end(at time.Time) (changed bool) {
	m := t.memory
	m.state, m.resolvedAt = inactive, at
	return t.move(m)
}

// lastSeen returns when the condition of an alert that is gone ceased to hold.
func (t *track) lastSeen() time.Time {
	if t.state == firing {
		return t.easedAt
	}
	return t.resolvedAt
}

func (t *track) move(to memory) (changed bool) {
	changed = t.state != to.state
	t.memory = to
	return changed
}

// live says whether there is anything to tell about the alert.
func (t *track) live() bool { return t.state != inactive || !t.resolvedAt.IsZero() }

// shown returns the state of an alert that is live.
func (t *track) shown() State {
	switch t.state {
	case pending:
		return Pending
	case firing:
		return Firing
	case inactive:
	}
	return Resolved
}

// alert is the track as others see it at a time. Where the wall clock was set back
// since the alert began, it begins and ends now: receivers refuse alerts of the future.
func (t *track) alert(now time.Time) Alert {
	a := Alert{
		ID: t.id, Rule: t.rule.Name, Key: t.labels[labelKey], Labels: t.labels, State: t.shown(),
		Value: t.latest.Value, Calls: t.latest.Calls, Bad: t.latest.Bad,
		ActiveAt: notAfter(t.activeAt, now), StartsAt: notAfter(t.firedAt, now), EndsAt: notAfter(t.resolvedAt, now),
		Summary: t.rule.Annotations["summary"], Annotations: t.rule.Annotations,
	}
	if a.Summary == "" {
		a.Summary = fmt.Sprintf("%s is %.4g, alerts %s", t.name, a.Value, t.rule.When)
	}
	return a
}

// notAfter compares by the wall clock, which is all that receivers see.
func notAfter(t, now time.Time) time.Time {
	t, now = t.Round(0), now.Round(0)
	if t.After(now) {
		return now
	}
	return t
}
