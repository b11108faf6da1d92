package alert

import (
	"fmt"
	"time"
)

// State is where an alert is, in Prometheus's words.
type State uint8

// The states of an alert.
const (
	Inactive State = iota // the condition does not hold
	Pending               // it holds, but not yet for as long as the rule asks
	Firing                // it has held for long enough
)

func (s State) String() string {
	switch s {
	case Inactive:
		return "inactive"
	case Pending:
		return "pending"
	case Firing:
		return "firing"
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// retention is for how long a resolved alert is remembered: as long as Prometheus does.
const retention = 15 * time.Minute

// memory is all that a rule remembers of one alert between two evaluations.
type memory struct {
	state      State
	bad        bool      // the latest verdict
	activeAt   time.Time // when the condition began to hold
	firedAt    time.Time
	easedAt    time.Time // while firing: when the condition ceased to hold; zero while it holds
	resolvedAt time.Time // after firing, for the retention
}

// step is one evaluation: what is remembered after a sample was seen at a time.
func (r *Rule) step(m memory, s Sample, at time.Time) memory {
	return r.advance(m, r.verdict(m, s), at)
}

// advance is Prometheus's AlertingRule.Eval, with a verdict in the place of "the
// expression returned something".
func (r *Rule) advance(m memory, bad bool, at time.Time) memory {
	switch {
	case bad && m.state == Inactive:
		m = memory{state: Pending, activeAt: at}
	case bad:
		m.easedAt = time.Time{}
	case m.state == Firing:
		m = r.ease(m, at)
	case m.state == Pending, at.Sub(m.resolvedAt) > retention:
		m = memory{}
	}
	if bad && m.state == Pending && at.Sub(m.activeAt) >= r.For {
		m.state, m.firedAt = Firing, at
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
	m.state, m.resolvedAt = Inactive, at
	return m
}

// verdict says whether the sample is a bad one for an alert in that state.
func (r *Rule) verdict(m memory, s Sample) bool {
	if !r.judges(s) {
		return r.NoData == Fire || r.NoData == KeepLast && m.bad
	}
	if m.state == Firing && r.Resolve.set {
		return !r.Resolve.Holds(s.Value)
	}
	return r.When.Holds(s.Value) && s.Bad >= r.MinBad
}

// judges says whether the sample is data enough. A figure that can only have been
// larger does not show that something is too low.
func (r *Rule) judges(s Sample) bool {
	return s.OK && s.Calls >= r.MinCalls && !(s.partial && r.When.below)
}
