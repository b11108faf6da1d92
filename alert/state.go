package alert

import "time"

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
