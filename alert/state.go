package alert

import "time"

// State is the state of an alert, as Prometheus and Alertmanager write it.
type State string

// The states of an alert. Where the condition does not hold there is no alert.
const (
	Pending  State = "pending"  // the condition holds, but not yet for as long as Rule.For
	Firing   State = "firing"   // it has held for long enough
	Resolved State = "resolved" // the alert has fired and fires no more
)

// stage is where the memory of an alert is.
type stage uint8

const (
	inactive stage = iota // the condition does not hold: no alert, or one that has resolved
	pending
	firing
	stages // how many there are
)

// String returns the stage as an attribute of metrics.
func (s stage) String() string { return [stages]string{"inactive", "pending", "firing"}[s] }

// retention is for how long a resolved alert is remembered: as long as Prometheus does.
const retention = 15 * time.Minute

// memory is all that a rule remembers of one alert between two evaluations.
type memory struct {
	state      stage
	bad        bool      // the latest verdict
	activeAt   time.Time // when the condition began to hold
	firedAt    time.Time
	easedAt    time.Time // while firing: when the condition ceased to hold; zero while it holds
	resolvedAt time.Time // after firing, for the retention
}

// step is one evaluation: what is remembered after a sample was seen at a time.
func (r *Rule) step(m memory, s measurement, at time.Time) memory {
	return r.advance(m, r.verdict(m, s), at)
}

// advance is Prometheus's AlertingRule.Eval, with a verdict in the place of "the
// expression returned something".
func (r *Rule) advance(m memory, bad bool, at time.Time) memory {
	switch {
	case bad && m.state == inactive:
		m = memory{state: pending, activeAt: at}
	case bad:
		m.easedAt = time.Time{}
	case m.state == firing:
		m = r.ease(m, at)
	case m.state == pending, at.Sub(m.resolvedAt) > retention:
		m = memory{}
	}
	if bad && m.state == pending && at.Sub(m.activeAt) >= r.For {
		m.state, m.firedAt = firing, at
	}
	m.bad = bad
	return m
}

// ease lets a firing alert whose condition does not hold go on for KeepFiring, then resolves it.
func (r *Rule) ease(m memory, at time.Time) memory {
	if m.easedAt.IsZero() {
		m.easedAt = at
	}
	if at.Sub(m.easedAt) < r.KeepFiring {
		return m
	}
	m.state, m.resolvedAt = inactive, at
	return m
}

// verdict says whether the sample is a bad one for an alert in that state.
func (r *Rule) verdict(m memory, s measurement) bool {
	if !r.judges(s) {
		return r.NoData == Fire || r.NoData != Resolve && m.bad
	}
	if m.state == firing && r.Resolve.set {
		return !r.Resolve.holds(s.Value)
	}
	return r.When.holds(s.Value) && s.Bad >= r.MinBad
}

// judges says whether the sample is data enough. A figure that can only have been
// larger does not show that something is too low.
func (r *Rule) judges(s measurement) bool {
	return s.OK && s.Calls >= r.MinCalls && !(s.partial && r.When.below)
}
