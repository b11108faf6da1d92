package breaker

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// flights counts the calls in flight by the time they began, to find calls that hang. It lasts as long
// as a closed phase: a call that hung before the breaker opened does not count after it closed.
//
// Time is divided into slices, each with a counter that is reused len(counters) slices later. A call
// that hangs longer than that is forgotten, as a result of that age would have left the window.
type flights struct {
	width    time.Duration // of a slice
	slow     time.Duration
	counters [40]flightCounter
	checked  atomic.Int64 // the slice in which hung was last called
	mu       sync.Mutex   // held to reuse a counter
}

type flightCounter struct {
	slice atomic.Int64
	calls atomic.Int64
}

// unwatched is the slice of a call that flights does not count.
const unwatched = -1

// newFlights returns nil if Config.HungCalls is not set. The methods of a nil flights count nothing.
func newFlights(r *rules) *flights {
	c := &r.config
	if !c.HungCalls {
		return nil
	}
	width := max(add(c.SlowCall, c.Window)/32, 1)
	if c.Buckets > 0 {
		width = max(width, c.Window/time.Duration(c.Buckets))
	}
	return &flights{width: width, slow: c.SlowCall}
}

func (f *flights) sliceAt(at time.Duration) int64 { return int64(max(at, 0) / f.width) }

func (f *flights) counter(slice int64) *flightCounter {
	return &f.counters[slice%int64(len(f.counters))]
}

// begin counts a call that begins, and returns the slice for end.
func (f *flights) begin(at time.Duration) (slice int64) {
	if f == nil {
		return unwatched
	}
	slice = f.sliceAt(at)
	c := f.counter(slice)
	if c.slice.Load() != slice {
		f.mu.Lock()
		if c.slice.Load() < slice {
			c.calls.Store(0)
			c.slice.Store(slice)
		}
		stale := c.slice.Load() != slice
		f.mu.Unlock()
		if stale {
			return unwatched
		}
	}
	c.calls.Add(1)
	return slice
}

func (f *flights) end(slice int64) {
	if f == nil || slice == unwatched {
		return
	}
	if c := f.counter(slice); c.slice.Load() == slice {
		c.calls.Add(-1)
	}
}

// hung returns the number of calls in flight for longer than slow. It reports first as false, and
// counts nothing, if it was called in the same slice before.
func (f *flights) hung(at time.Duration) (calls int64, first bool) {
	now := f.sliceAt(at)
	old := f.checked.Load()
	if old >= now || !f.checked.CompareAndSwap(old, now) {
		return 0, false
	}
	oldest := now - int64(len(f.counters)) + 1
	for i := range f.counters {
		c := &f.counters[i]
		// All calls of a slice are older than slow when the end of the slice is.
		if s := c.slice.Load(); s >= oldest && time.Duration(s+1)*f.width <= at-f.slow {
			calls += max(c.calls.Load(), 0)
		}
	}
	return calls, true
}

// any reports whether calls are in flight that may hang.
func (f *flights) any(at time.Duration) bool {
	if f == nil {
		return false
	}
	oldest := f.sliceAt(at) - int64(len(f.counters)) + 1
	for i := range f.counters {
		if c := &f.counters[i]; c.slice.Load() >= oldest && c.calls.Load() > 0 {
			return true
		}
	}
	return false
}

// openIfHung opens the breaker if the slow rate is reached when the calls that hang count as slow, and
// reports whether it is.
func (b *Breaker) openIfHung(p *phase, at time.Duration) bool {
	hung, first := p.flights.hung(at)
	if !first || hung == 0 {
		return false
	}
	r := p.rules
	calls, slow := p.tally.Rates(at, &p.floor)
	all, bad := calls.Calls+hung, min(slow.Calls, calls.Calls)+hung
	if all < r.minCalls || !r.slowRate.reached(bad, all) {
		return false
	}
	b.trip(p, at, cause{fmt.Sprintf("%s, %d of them still in flight", r.slowReason(bad, all), hung), byCalls}, calls)
	return true
}
