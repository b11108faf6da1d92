package inflight

import (
	"cmp"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
)

// adaptive is the lock and the clock around an adaptation. It stores the limit where the limiter
// reads it.
type adaptive struct {
	epoch time.Time
	limit *atomic.Uint32

	started atomic.Uint64 // calls that took a slot
	mask    atomic.Uint64 // calls whose number has none of these bits are timed

	bounding atomic.Bool // what bound.bounding is
	reached  atomic.Bool // the limit was reached while bounding was true

	mu      sync.Mutex
	bound   adaptation
	checked time.Duration // when the mask was last set
	counted uint64        // the started calls then
}

const (
	// untimed is the start of a call that is not timed.
	untimed time.Duration = -1
	// timedPerSecond is about the most calls that are timed per second, and maskEvery how often the
	// rate of calls is looked at.
	timedPerSecond = 5000
	maskEvery      = 100 * time.Millisecond
)

func newAdaptive(epoch time.Time, c Config, limit *atomic.Uint32) *adaptive {
	a := &adaptive{epoch: epoch, limit: limit, bound: newAdaptation(cmp.Or(c.Limit, maxLimit), c.Queue.Target > 0)}
	limit.Store(a.bound.whole())
	return a
}

// begin counts a call and returns the time it begins at, or untimed.
func (a *adaptive) begin() time.Duration {
	if a.started.Add(1)&a.mask.Load() != 0 {
		return untimed
	}
	return time.Since(a.epoch)
}

// end tells of a call that has ended. inFlight includes it.
func (a *adaptive) end(start time.Duration, inFlight int, e ending) {
	if start == untimed {
		return
	}
	now := time.Since(a.epoch)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.setMask(now)
	a.bound.tick(now, a.started.Load(), inFlight)
	if a.reached.Load() {
		a.reached.Store(false)
		a.bound.full()
	}
	switch e {
	case ignored:
		a.bound.ignored()
	case left:
		a.bound.left(now - start)
	default:
		a.bound.ended(now-start, e == failed)
	}
	a.store()
}

// raise is asked when the limit is reached, and reports whether the limit is higher now. Refused
// calls take neither the lock nor the time.
func (a *adaptive) raise(inFlight int) bool {
	if a.bounding.Load() {
		if !a.reached.Load() {
			a.reached.Store(true)
		}
		return int(a.limit.Load()) > inFlight
	}
	now := time.Since(a.epoch)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.bound.tick(now, a.started.Load(), inFlight)
	a.bound.full()
	a.store()
	return int(a.bound.whole()) > inFlight
}

// setMost changes the highest limit.
func (a *adaptive) setMost(most int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.bound.setMost(most)
	a.store()
}

func (a *adaptive) store() {
	if b := a.bound.bounding; b != a.bounding.Load() {
		a.reached.Store(false)
		a.bounding.Store(b)
	}
	if limit := a.bound.whole(); limit != a.limit.Load() {
		a.limit.Store(limit)
	}
}

// setMask lets about timedPerSecond calls be timed per second.
func (a *adaptive) setMask(now time.Duration) {
	elapsed := now - a.checked
	if elapsed < maskEvery {
		return
	}
	started := a.started.Load()
	rate := float64(started-a.counted) / elapsed.Seconds()
	a.checked, a.counted = now, started
	mask := uint64(1)<<bits.Len64(uint64(rate)/timedPerSecond) - 1
	a.mask.Store(mask)
	a.bound.setEvery(float64(mask + 1))
}
