package breaker

import (
	"math"
	"time"
)

// probeSlots are the slots of a half-open phase. Breaker.mu guards them.
//
// A probe occupies a slot until its result is recorded or its time is over. The slot of a success
// or a failure stays used for the rest of the phase, so that no more probes are made than the
// decision needs. An ignored probe releases its slot.
//
// After Reconfigure there may be more slots than Config.Probes, since probes in flight keep their
// slots.
type probeSlots []probeSlot

type probeSlot struct {
	state slotState
	use   uint32        // the number of this use: a permit of an earlier use does not match
	until time.Duration // when an occupied slot falls free
}

type slotState uint8

const (
	slotFree slotState = iota
	slotOccupied
	slotUsed
)

// reset frees all slots. The numbers of their uses continue, so that no permit of an earlier phase
// matches.
func (ps *probeSlots) reset(n int) {
	if len(*ps) != n {
		*ps = make(probeSlots, n)
	}
	for i := range *ps {
		(*ps)[i].state = slotFree
	}
}

// findFree returns a slot for a probe at the given time, or -1 if limit slots are in use.
func (ps *probeSlots) findFree(at time.Duration, limit int) int {
	inUse, free := 0, -1
	for i := range *ps {
		switch s := &(*ps)[i]; {
		case s.state == slotUsed || s.state == slotOccupied && at < s.until:
			inUse++
		case free < 0:
			free = i
		}
	}
	if inUse >= limit {
		return -1
	}
	if free < 0 { // Config.Probes has grown
		*ps = append(*ps, probeSlot{})
		free = len(*ps) - 1
	}
	return free
}

// occupy occupies slot i until the given time. It returns the number of the use, and reports
// whether another probe left the slot without a result.
func (ps probeSlots) occupy(i int, until time.Duration) (use uint32, abandoned bool) {
	s := &ps[i]
	abandoned = s.state == slotOccupied
	s.use++
	s.state, s.until = slotOccupied, until
	return s.use, abandoned
}

// leaveSlot sets the state of slot i after its probe, unless another probe occupies the slot by
// now.
func (ps probeSlots) leaveSlot(i int32, use uint32, state slotState) {
	if s := &ps[i]; s.state == slotOccupied && s.use == use {
		s.state = state
	}
}

// inFlight returns the number of occupied slots.
func (ps probeSlots) inFlight(at time.Duration) (n int64) {
	for _, s := range ps {
		if s.state == slotOccupied && at < s.until {
			n++
		}
	}
	return n
}

// nextFree returns when fewer than limit slots are in use. That is when the first occupied slot
// falls free or, if more than limit slots are in use, when the last one does.
func (ps probeSlots) nextFree(at time.Duration, limit int) time.Duration {
	first, last, inUse := time.Duration(math.MaxInt64), time.Duration(math.MinInt64), 0
	for _, s := range ps {
		switch {
		case s.state == slotUsed:
			inUse++
		case s.state == slotOccupied && s.until > at:
			inUse++
			first, last = min(first, s.until), max(last, s.until)
		}
	}
	if inUse > limit && last > first {
		return last
	}
	return first
}
