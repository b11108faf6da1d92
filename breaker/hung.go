package breaker

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// flights count the calls in flight by the time at which they were let through, to
// find those that hang. They live as long as a closed phase does: what hung before
// a breaker opened does not count against it when it has closed.
//
// Time goes by grains, each with a counter that is used again some way on. A call
// that hangs for longer than that is forgotten, as a result of its age would have
// left the window.
type flights struct {
	grain time.Duration
	slow  time.Duration
	cells [40]cell
	looks atomic.Int64 // the grain in which was looked last
	mu    sync.Mutex   // held to take a cell for a new grain
}

type cell struct {
	grain atomic.Int64
	n     atomic.Int64
}

// unwatched is the grain of a call that is not counted.
const unwatched = -1

// newFlights returns nil, which counts nothing, where hung calls do not matter.
func newFlights(r *rules) *flights {
	c := &r.config
	if !c.HungCalls {
		return nil
	}
	grain := max(add(c.SlowCall, c.Window)/32, 1)
	if c.Buckets > 0 {
		grain = max(grain, c.Window/time.Duration(c.Buckets))
	}
	return &flights{grain: grain, slow: c.SlowCall}
}

// start counts a call, and returns what end wants to know.
func (f *flights) start(at time.Duration) (grain int64) {
	if f == nil {
		return unwatched
	}
	grain = int64(max(at, 0) / f.grain)
	c := &f.cells[grain%int64(len(f.cells))]
	if c.grain.Load() != grain {
		f.mu.Lock()
		if c.grain.Load() < grain {
			c.n.Store(0)
			c.grain.Store(grain)
		}
		stale := c.grain.Load() != grain
		f.mu.Unlock()
		if stale {
			return unwatched
		}
	}
	c.n.Add(1)
	return grain
}

func (f *flights) end(grain int64) {
	if f == nil || grain == unwatched {
		return
	}
	if c := &f.cells[grain%int64(len(f.cells))]; c.grain.Load() == grain {
		c.n.Add(-1)
	}
}

// look returns how many calls hang, and false if that was looked at in this grain
// already.
func (f *flights) look(at time.Duration) (hung int64, first bool) {
	now := int64(max(at, 0) / f.grain)
	old := f.looks.Load()
	if old >= now || !f.looks.CompareAndSwap(old, now) {
		return 0, false
	}
	oldest := now - int64(len(f.cells)) + 1
	for i := range f.cells {
		c := &f.cells[i]
		// All calls of the grain are older than slow when its end is.
		if g := c.grain.Load(); g >= oldest && time.Duration(g+1)*f.grain <= at-f.slow {
			hung += max(c.n.Load(), 0)
		}
	}
	return hung, true
}

// hung opens the breaker if the calls that hang, as slow as they are by now, call
// for it. It reports whether they do.
func (b *Breaker) hung(p *phase, at time.Duration) bool {
	n, first := p.flights.look(at)
	if !first || n == 0 {
		return false
	}
	r := p.rules
	calls, slow := p.tally.Rates(at, &p.floor)
	all, bad := calls.Calls+n, min(slow.Calls, calls.Calls)+n
	if all < r.minCalls || !r.slowRate.reached(bad, all) {
		return false
	}
	b.trip(p, at, cause{fmt.Sprintf("%s, %d of them still in flight", r.slowed(bad, all), n), byCalls}, calls)
	return true
}
