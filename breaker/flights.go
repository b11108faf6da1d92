package breaker

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// flights counts the calls in flight by the time they began, to find calls that hang. It begins
// with a closed or recovering phase, and again when its config changes: a call that hung before the
// breaker opened does not count after it closed.
//
// Time is divided into slices, each with a counter that is reused len(counters) slices later. A
// slice is at most half a second plus half of SlowCall long, so that a call is found to hang soon.
// When a counter is reused, its calls that are still in flight are moved to the counters in older.
// They count there until they have been in flight for so long that their results would no longer be
// in the window.
//
// Calls of a process that was suspended look as if they hung. So if no call began during a pause,
// the calls that became slow in the pause hang only if they are still in flight graceAfterPause
// after its end.
type flights struct {
	began    time.Duration // times below are since then, and never negative
	width    time.Duration // of a slice
	tick     time.Duration // how exactly pauses are measured
	slow     time.Duration
	pause    time.Duration // the shortest pause in which the process may have been suspended
	kept     time.Duration // the age up to which calls in flight count
	counters [40]flightCounter
	seen     atomic.Int64 // the tick in which a call last began or was refused

	mu      sync.Mutex // guards the fields below and flightCounter.slice; held to reuse a counter
	checked int64      // the slice in which countHung last counted
	paused  time.Duration
	resumed time.Duration // the end of the last pause, which began at paused
	until   time.Duration // calls that were slow by then have been counted
	older   *[40]olderFlights
	ratio   int64 // how many slices one counter of older covers
}

// flightCounter has the low half of the number of a slice and the calls of that slice in one word,
// so that an atomic addition returns the slice it has changed, even if the counter is reused at
// that moment.
type flightCounter struct {
	word  atomic.Int64
	slice int64
}

type olderFlights struct {
	number int64
	newest int64 // the newest slice whose calls are counted here
	calls  int64
}

// unwatchedSlice is the slice of a call that flights does not count.
const unwatchedSlice = -1

// graceAfterPause is how long the calls in flight of a process that was suspended may take to end.
const graceAfterPause = 500 * time.Millisecond

// newFlights returns nil if Config.HungCalls is not set. The methods of a nil flights count
// nothing.
func newFlights(r *rules, at time.Duration) *flights {
	c := &r.config
	if !c.HungCalls {
		return nil
	}
	f := &flights{began: min(at, 0), slow: c.SlowCall, kept: addClamped(c.SlowCall, r.timeToEmpty())}
	f.width = max(f.kept/32, 1)
	if c.Buckets > 0 {
		f.width = max(f.width, c.Window/time.Duration(c.Buckets))
	}
	f.width = min(f.width, addClamped(c.SlowCall, time.Second)/2)
	f.pause = addClamped(addClamped(c.SlowCall, c.SlowCall), time.Second)
	f.tick = min(f.width, max(c.SlowCall/8, time.Millisecond))
	f.ratio = int64(f.kept/32/f.width) + 1
	return f
}

func packFlights(slice, calls int64) int64 { return slice<<32 + calls }

// unpackFlights returns the low half of the number of the slice, and the calls.
func unpackFlights(word int64) (slice uint32, calls int64) {
	calls = int64(int32(word))                 //nolint:gosec // the lower half is a signed count
	return uint32((word - calls) >> 32), calls //nolint:gosec // the upper half
}

func (c *flightCounter) belongsTo(slice, word int64) bool {
	low, _ := unpackFlights(word)
	return low == uint32(slice) //nolint:gosec // the lower half
}

func (f *flights) counter(slice int64) *flightCounter {
	return &f.counters[slice%int64(len(f.counters))]
}

// begin counts a call that begins, and returns the slice to pass to end. A stale time counts as the
// newest.
func (f *flights) begin(at time.Duration) (slice int64) {
	if f == nil {
		return unwatchedSlice
	}
	at = max(at-f.began, 0)
	if newest := time.Duration(f.seen.Load()) * f.tick; at < newest {
		at = newest + f.tick
	}
	slice = int64(at / f.width)
	c := f.counter(slice)
	if c.belongsTo(slice, c.word.Load()) {
		word := c.word.Add(1)
		if c.belongsTo(slice, word) {
			return slice
		}
		low, _ := unpackFlights(word)           // the counter was reused before the addition
		return slice + int64(low-uint32(slice)) //nolint:gosec // the lower half
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if c.slice < slice {
		_, calls := unpackFlights(c.word.Swap(packFlights(slice, 0)))
		f.moveToOlder(c.slice, calls)
		c.slice = slice
	}
	c.word.Add(1) // the counter is not reused while the lock is held
	return c.slice
}

// moveToOlder moves the counted calls of a slice to f.older. The lock is held.
func (f *flights) moveToOlder(slice, calls int64) {
	if calls <= 0 {
		return
	}
	if f.older == nil {
		f.older = new([40]olderFlights)
	}
	number := slice / f.ratio
	o := &f.older[number%int64(len(f.older))]
	if o.number < number {
		*o = olderFlights{number: number}
	}
	if o.number == number {
		o.newest = max(o.newest, slice)
		o.calls += calls
	}
}

// end is small, so that the compiler inlines it into the path of every result.
func (f *flights) end(slice int64) {
	if f != nil && slice != unwatchedSlice {
		f.endWatched(slice)
	}
}

func (f *flights) endWatched(slice int64) {
	c := f.counter(slice)
	if c.belongsTo(slice, c.word.Load()) {
		if c.belongsTo(slice, c.word.Add(-1)) {
			return
		}
		c.word.Add(1) // the counter was reused before the addition
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.older == nil {
		return
	}
	if o := &f.older[slice/f.ratio%int64(len(f.older))]; o.number == slice/f.ratio {
		o.calls--
	}
}

// countHung returns the number of calls in flight for longer than slow. It counts only at the first
// call of each slice, and reports by first whether it did.
func (f *flights) countHung(at time.Duration) (calls int64, first bool) {
	at = max(at-f.began, 0)
	now := int64(at / f.tick)
	if f.seen.Load() >= now {
		return 0, false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	seen := f.seen.Load()
	if seen >= now {
		return 0, false
	}
	f.seen.Store(now)
	if from := time.Duration(seen+1) * f.tick; at-from >= f.pause {
		f.paused, f.resumed = from, at
	}
	slice := int64(at / f.width)
	if f.checked >= slice {
		return 0, false
	}
	f.checked = slice
	until := at
	if at-f.resumed < graceAfterPause {
		until = f.paused
	}
	// a slow call counts at least once, however late the next call is
	from := min(at-f.kept, f.until-f.slow)
	f.until = until
	return f.count(from, until-f.slow), true
}

// count returns the number of calls in flight whose slice ended after from and not after to. The
// lock is held.
func (f *flights) count(from, to time.Duration) (calls int64) {
	include := func(slice, n int64) {
		if end := time.Duration(slice+1) * f.width; end > from && end <= to {
			calls += max(n, 0)
		}
	}
	for i := range f.counters {
		_, n := unpackFlights(f.counters[i].word.Load())
		include(f.counters[i].slice, n)
	}
	if f.older != nil {
		for i := range f.older {
			include(f.older[i].newest, f.older[i].calls)
		}
	}
	return calls
}

// anyMayHang reports whether calls are in flight that may hang.
func (f *flights) anyMayHang(at time.Duration) bool {
	if f == nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	at -= f.began
	return f.count(at-f.kept, at+f.width) > 0
}

// openIfHung counts the calls that hang as slow. It opens the breaker if the slow rate is reached,
// and reports whether the rate is reached.
func (b *Breaker) openIfHung(p *regime, at time.Duration) bool {
	hung, first := p.flights.countHung(at)
	if !first || hung == 0 {
		return false
	}
	r := p.rules
	calls, slow := p.tally.Rates(at, &p.floor)
	all, bad := calls.Calls+hung, min(slow.Calls, calls.Calls)+hung
	if all < r.minCalls || !r.slowRate.reached(bad, all) {
		return false
	}
	b.trip(p, at, cause{reason: fmt.Sprintf("%s, %d of them still in flight", r.slowReason(bad, all), hung), origin: byCalls}, calls)
	return true
}
