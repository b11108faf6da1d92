package breaker_test

import (
	"slices"
	"time"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/window"
)

// stayAt returns the stay at the time t, and whether the change that began it was recorded already.
func (m *modelBreaker) stayAt(t time.Duration) (s modelStay, settled bool) {
	if brought := m.dueStays(m.stay, t); len(brought) > 0 {
		return brought[len(brought)-1], false
	}
	return m.stay, true
}

func (m *modelBreaker) stats(t time.Duration) breaker.AllStats {
	s, settled := m.stayAt(t)
	var c window.Counts
	switch s.state {
	case breaker.Closed, breaker.Recovering, breaker.ForcedClosed, breaker.Shadow:
		c = m.countsAt(t)
	case breaker.Open:
		c = s.tripped
	case breaker.HalfOpen:
		if settled {
			c = m.probed
		}
	default:
	}
	c.Refused = 0
	if settled {
		c.Refused = m.refused
	}
	return breaker.AllStats{
		State: s.state, Since: t0.Add(s.since), Counts: c, Totals: m.totals, Abandoned: m.abandoned,
		Late: m.late, ShadowOpened: m.shadowOpened, ShadowRefused: m.shadowRefused,
	}
}

// allow returns a call, or the error that refuses it.
func (m *modelBreaker) allow(t time.Duration) (*modelCall, *breaker.OpenError) {
	m.enterDue(t)
	m.rampAdvance(t)
	m.enterDue(t)
	c := &modelCall{visit: m.visit, start: t, timed: m.config.SlowCall > 0}
	switch m.stay.state {
	case breaker.Open, breaker.ForcedOpen:
		return nil, m.refuse(t)
	case breaker.HalfOpen:
		if m.tooEarlyToProbe(&m.stay, t) {
			return nil, m.refuse(t)
		}
		c.place = m.freeSlot(t)
		if c.place < 0 {
			return nil, m.refuse(t)
		}
		if m.places[c.place] != nil {
			m.abandoned++
		}
		m.places[c.place] = c
		c.timed, c.lease = true, modelAdd(m.latest(t), m.config.ProbeTimeout)
		if half := m.config.HalfOpenTimeout; half > 0 && m.stay.until == modelNever {
			m.stay.until = modelAdd(m.latest(t), half)
		}
	case breaker.Recovering:
		if !m.rampPasses(t) {
			m.rampRefuse()
			return nil, m.refuse(t)
		}
		m.rampPass(c, t)
	case breaker.Shadow:
		if c.shadow, _ = m.shadow.allow(t); c.shadow == nil {
			m.shadowRefused++
		}
		m.reportShadow()
	default:
	}
	m.addToSample(c, t)
	return c, nil
}

// check returns the error that allow would return, or nil.
func (m *modelBreaker) check(t time.Duration) *breaker.OpenError {
	switch s, settled := m.stayAt(t); {
	case s.state == breaker.Open, s.state == breaker.ForcedOpen,
		s.state == breaker.HalfOpen && (m.tooEarlyToProbe(&s, t) || settled && m.freeSlot(t) < 0):
		m.enterDue(t)
		return m.refuse(t)
	case s.state == breaker.Recovering && !m.rampPasses(t):
		m.rampRefuse()
		return m.refuse(t)
	}
	return nil
}

func (m *modelBreaker) refuse(t time.Duration) *breaker.OpenError {
	spared := m.tooEarlyToProbe(&m.stay, t)
	m.refused++
	m.totals.Refused++
	e := &breaker.OpenError{Name: "model", State: m.stay.state, Reason: m.stay.reason}
	switch m.stay.state {
	case breaker.Open:
		e.Until = t0.Add(m.stay.until)
		if m.stay.byRun && m.stay.rounds > 0 {
			e.Until = t0.Add(max(m.stay.until, m.stay.spareTo))
		}
	case breaker.HalfOpen:
		// when a slot falls free, or when the next cooldown ends if HalfOpenTimeout ends first
		if spared {
			e.Until = t0.Add(m.stay.spareTo)
			break
		}
		until := m.slotFreeAt(t)
		if until >= m.stay.until {
			until = max(modelAdd(m.stay.until, m.stay.cooldown), m.stay.asked)
		}
		e.Until = t0.Add(until)
	default:
	}
	return e
}

// slotsInUse returns when the occupied slots fall free, and how many slots are used.
func (m *modelBreaker) slotsInUse(t time.Duration) (leases []time.Duration, verdicts int) {
	for _, c := range m.places {
		switch {
		case c == nil:
		case c.verdict:
			verdicts++
		case t < c.lease:
			leases = append(leases, c.lease)
		}
	}
	return leases, verdicts
}

// freeSlot returns the first free slot, if fewer than Probes slots are in use.
func (m *modelBreaker) freeSlot(t time.Duration) int {
	if leases, verdicts := m.slotsInUse(t); len(leases)+verdicts >= m.config.Probes {
		return -1
	}
	for i, c := range m.places {
		if c == nil || !c.verdict && t >= c.lease {
			return i
		}
	}
	m.places = append(m.places, nil)
	return len(m.places) - 1
}

// slotFreeAt returns when the first slot falls free, or the last one if too many are in use.
func (m *modelBreaker) slotFreeAt(t time.Duration) time.Duration {
	leases, verdicts := m.slotsInUse(t)
	if len(leases) == 0 {
		return modelNever
	}
	if len(leases)+verdicts > m.config.Probes {
		return slices.Max(leases)
	}
	return slices.Min(leases)
}

// done records the result of a call, and reports whether it counted.
func (m *modelBreaker) done(c *modelCall, t time.Duration, o breaker.Outcome, after time.Duration) bool {
	if c.used {
		return false
	}
	c.used = true
	m.endSampled(c, t, o)
	if c.visit == m.visit {
		m.enterDue(t)
	}
	if c.visit != m.visit {
		m.late++
		return false
	}
	if m.stay.state == breaker.Disabled {
		return false
	}
	r := modelResult{call: c, outcome: o, slow: c.timed && m.config.SlowCall > 0 && t-c.start > m.config.SlowCall}
	m.addResult(t, r)
	if after > 0 && m.config.MaxRetryAfter > 0 {
		m.stay.asked = max(m.stay.asked, modelAdd(t, min(after, m.config.MaxRetryAfter)))
	}
	switch {
	case m.stay.state == breaker.HalfOpen:
		m.probe(c, t, r)
	case m.stay.state == breaker.Recovering:
		m.rampResult(c, t, r)
	case m.stay.state == breaker.Shadow:
		if c.shadow != nil {
			m.shadow.done(c.shadow, t, o, after)
			m.reportShadow()
		}
	case m.stay.state != breaker.ForcedClosed && r.isJudged():
		if m.config.FailureRun != breaker.Off {
			m.run = append(m.run, r)
			if n := len(m.run); o == breaker.Failure && (n == 1 || m.runLength(m.run[:n-1]) == 0) {
				m.runBegan = t
			}
		}
		if !m.clean || m.config.Trip != nil || m.config.SharedCounts != nil {
			m.judge(c, t, o)
		}
	}
	return true
}

// modelAdd returns a + d, or modelNever if that overflows.
func modelAdd(a, d time.Duration) time.Duration {
	if d > 0 && a > modelNever-d {
		return modelNever
	}
	return a + d
}
