package sim

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// coldState is the state of a cache that a fault has emptied.
type coldState struct {
	fault  int
	served int // since the end of the fault
}

// holds reports whether t is in the span.
func (s Span) holds(t time.Duration) bool { return s.From <= t && t < s.To }

// holds reports whether the fault is in effect at t.
func (f *Fault) holds(t time.Duration) bool {
	return f.Span.holds(t) && (f.Period == 0 || (t-f.From)%f.Period < f.active())
}

// active returns the length of the part of each period in which the fault is in effect.
func (f *Fault) active() time.Duration {
	if f.Duty == 0 {
		return f.Period / 2
	}
	return time.Duration(f.Duty * float64(f.Period))
}

// growth returns the part of the fault's size that it has at t.
func (f *Fault) growth(t time.Duration) float64 {
	if !f.Grows {
		return 1
	}
	return float64(t-f.From) / float64(f.To-f.From)
}

// nextChange returns when the fault may begin or end after t.
func (f *Fault) nextChange(t time.Duration) (at time.Duration, ok bool) {
	switch {
	case t < f.From:
		return f.From, true
	case t >= f.To:
		return 0, false
	case f.Period == 0:
		return f.To, true
	}
	phase := (t - f.From) % f.Period
	if phase < f.active() {
		return min(t-phase+f.active(), f.To), true
	}
	return min(t-phase+f.Period, f.To), true
}

// at reports whether the fault is at the host with this index.
func (f *Fault) at(host int) bool { return f.Host == 0 || f.Host == host+1 }

// toggleFault begins or ends a fault.
func (s *service) toggleFault(i int) {
	f := &s.run.world.Faults[i]
	now := s.run.now()
	if at, ok := f.nextChange(now); ok {
		s.run.push(event{at: at, kind: toggle, index: i})
	}
	was := s.inForce[i]
	s.inForce[i] = f.holds(now)
	if f.Cold > 1 && was != s.inForce[i] {
		s.cold = slices.DeleteFunc(s.cold, func(c coldState) bool { return c.fault == i })
		if was {
			s.cold = append(s.cold, coldState{fault: i})
		}
	}
	for n := range s.hosts {
		if f.at(n) {
			s.setConditions(n)
		}
	}
}

// setConditions combines the faults that are at a host, and applies what has changed.
func (s *service) setConditions(n int) {
	h := s.hosts[n]
	wasDown, wasHung := h.down, h.hung
	h.down, h.failTime, h.ends, h.slower = false, 0, 0, h.slower[:0]
	h.errors = append(h.errors[:0], errorRate{share: s.ErrorRate, fault: new(Fault)})
	capacity, answered := 1.0, 1.0
	for i := range s.run.world.Faults {
		f := &s.run.world.Faults[i]
		if !s.inForce[i] || !f.at(n) {
			continue
		}
		if f.Down {
			h.down, h.failTime = true, max(h.failTime, f.FailTime)
			if f.TellsEnd {
				h.ends = max(h.ends, f.To)
			}
		}
		if f.ErrorRate > 0 {
			h.errors = append(h.errors, errorRate{f.ErrorRate, f.FailTime, f})
		}
		if f.Slower > 0 {
			h.slower = append(h.slower, slowdown{f.Slower, cmp.Or(f.SlowShare, 1), f})
		}
		answered *= 1 - f.Lost
		if f.Capacity == NoCapacity {
			capacity = 0
		} else if f.Capacity > 0 {
			capacity *= f.Capacity
		}
	}
	if h.failTime == 0 {
		h.failTime = time.Millisecond
	}
	h.hung, h.lost = capacity == 0, 1-answered
	h.servers = max(int(math.Round(capacity*float64(s.Servers))), 1)
	s.changeHung(h, wasHung)
	if h.down && !wasDown {
		s.reset(h)
	}
	s.startWaiting(h)
}

// changeHung stops the work on a host that begins to hang, and resumes the work on a host that no
// longer hangs.
func (s *service) changeHung(h *host, was bool) {
	now := s.run.now()
	for _, a := range h.working {
		switch {
		case h.hung && !was:
			a.left = a.ends - now
			a.version++ // the scheduled end is void
		case !h.hung && was:
			s.schedule(a, a.left)
		}
	}
}

// reset fails all attempts at a host that goes down. Each has its own event, so that the callers
// see the connections end one after the other.
func (s *service) reset(h *host) {
	now := s.run.now()
	reset := func(a *attempt) {
		s.pending++
		a.failure = errReset
		s.run.push(event{at: now, kind: fail, attempt: a, index: a.version})
	}
	for len(h.working) > 0 {
		a := h.working[0]
		left := a.ends - now
		if h.hung {
			left = a.left
		}
		s.stop(h, a, a.works-left)
		reset(a)
	}
	for _, a := range h.queue {
		s.leave(a)
		reset(a)
	}
	h.queue = nil
}

// coldness returns by how much a cold cache slows an attempt down that starts now.
func (s *service) coldness(host int) float64 {
	slower := 1.0
	for _, c := range s.cold {
		f := &s.run.world.Faults[c.fault]
		if f.at(host) && c.served < f.ColdCalls {
			slower *= 1 + (f.Cold-1)*(1-float64(c.served)/float64(f.ColdCalls))
		}
	}
	return slower
}

// noteWarm notes that a host has served an attempt.
func (s *service) noteWarm(host int) {
	for i := range s.cold {
		if s.run.world.Faults[s.cold[i].fault].at(host) {
			s.cold[i].served++
		}
	}
}
