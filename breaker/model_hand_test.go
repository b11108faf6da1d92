package breaker_test

import (
	"cmp"
	"fmt"
	"time"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/window"
)

// The administrative methods of the model.

func (m *modelBreaker) force(t time.Duration, s breaker.State, reason string) {
	t = m.beginByHand(t)
	m.forced, m.forcing = s, cmp.Or(reason, "forced")
	m.followOverride(t, m.forcing)
}

func (m *modelBreaker) release(t time.Duration) {
	t = m.beginByHand(t)
	m.forced = ""
	m.followOverride(t, "released")
}

// overrideInEffect returns the override by hand, or else that of the config.
func (m *modelBreaker) overrideInEffect() (s breaker.State, reason string) {
	if m.forced != "" {
		return m.forced, m.forcing
	}
	return m.config.Force, cmp.Or(m.config.ForceReason, "forced")
}

// followOverride begins or ends an override after a change.
func (m *modelBreaker) followOverride(t time.Duration, why string) {
	switch s, reason := m.overrideInEffect(); {
	case s == "" && m.under != nil:
		m.resume(t, why)
	case s == "":
	case s == m.stay.state:
		m.stay.reason = reason
	default:
		if m.under == nil {
			under := m.stay
			m.under = &under
		}
		m.enter(modelStay{state: s, since: t, until: modelNever, reason: reason}, "hand", why, window.Counts{})
	}
}

// resume ends an override.
func (m *modelBreaker) resume(t time.Duration, why string) {
	s := *m.under
	if brought := m.dueStays(s, t); len(brought) > 0 {
		s = brought[len(brought)-1]
	}
	switch s.state {
	case breaker.HalfOpen:
		s.until = modelNever // its probes start again
	case breaker.Recovering:
		s.state = m.afterProbes()
	default:
	}
	s.since, m.under = t, nil
	m.enter(s, "hand", why, window.Counts{})
}

func (m *modelBreaker) openFor(t, d time.Duration) {
	t = m.beginByHand(t)
	m.setStay(modelStay{state: breaker.Open, since: t, until: modelAdd(t, max(d, 0)), wait: modelAdd(t, max(d, 0)) - t, reason: fmt.Sprintf("opened by OpenFor for %v", max(d, 0))})
}

func (m *modelBreaker) reset(t time.Duration) {
	t = m.beginByHand(t)
	m.setStay(modelStay{state: breaker.Closed, since: t, until: modelNever, reason: "reset"})
}

// setStay begins a stay. While an override is in effect, the stay begins underneath it.
func (m *modelBreaker) setStay(s modelStay) {
	old := m.stay
	if m.under != nil {
		old = *m.under
	}
	s.rounds, s.cooldown = old.rounds, m.cooldown(old.rounds)
	if s.state == breaker.Closed {
		s.rounds = 0
	}
	switch {
	case m.under != nil:
		m.under = &s
	case s.state == old.state: // the state starts again, which is not a change
		m.begin(s)
	default:
		m.enter(s, "hand", s.reason, window.Counts{})
	}
}

// beginByHand is the common beginning of all changes by hand.
func (m *modelBreaker) beginByHand(t time.Duration) time.Duration {
	m.enterDue(t)
	return m.latest(t)
}

func (m *modelBreaker) reconfigure(given time.Duration, c breaker.Config) {
	t := m.beginByHand(given)
	if m.under != nil {
		if brought := m.dueStays(*m.under, t); len(brought) > 0 {
			m.under = &brought[len(brought)-1]
		}
	}
	old := m.config
	m.config = modelDefaults(c)
	if c := m.config; c.Window != old.Window || c.Buckets != old.Buckets || c.LastCalls != old.LastCalls {
		m.results, m.from, m.newest = nil, 0, 0
		m.clean, m.rollAt = false, modelStale
		m.ramp.counted = &modelBreaker{}
	}
	if c := m.config; c.FailureRun == breaker.Off || c.FailureRate != old.FailureRate {
		m.run = nil
	}
	if m.config.HalfOpenTimeout != old.HalfOpenTimeout {
		for _, s := range []*modelStay{&m.stay, m.under} {
			if s != nil && s.state == breaker.HalfOpen {
				s.until = modelNever // it runs from the next probe on
			}
		}
	}
	if m.shadow != nil {
		inShadow := c
		inShadow.Force = ""
		m.shadow.reconfigure(given, inShadow)
		m.reportShadow()
	}
	switch {
	case m.stay.state == breaker.HalfOpen:
		m.concludeProbes(t)
	case m.stay.state != breaker.Recovering:
	case m.config.Recovery == 0:
		m.enter(modelStay{state: breaker.Closed, since: t, until: modelNever, reason: m.stay.reason, cooldown: m.stay.cooldown}, "hand", "Recovery is off", window.Counts{})
	case m.ramp.share < 1:
		m.rampJudge(t)
	}
	why := cmp.Or(c.ForceReason, "forced")
	if c.Force == "" {
		why = "Force is empty"
	}
	m.followOverride(t, why)
}
