package inflight

import (
	"cmp"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/clock"
	"github.com/weir-go/weir/internal/friend"
)

// adaptive adds a lock and a clock to an adaptation, and stores the limit where the limiter reads
// it.
type adaptive struct {
	epoch time.Time
	limit *atomic.Uint32

	started atomic.Uint64 // calls that took a slot
	mask    atomic.Uint64 // calls whose number has none of these bits are timed

	// the time from which a probe may pass, or notBounding, and when a call last passed before it
	probeAt, passedAt atomic.Int64
	reached           atomic.Bool // the limit was reached before probeAt

	mu         sync.Mutex
	adaptation adaptation
	checked    time.Duration // when the mask was last set
	counted    uint64        // the started calls then
}

const (
	// untimed stands for the start time of a call that is not timed.
	untimed = friend.Untimed
	// timedPerSecond is about the highest number of calls that are timed per second, and maskEvery
	// is how often the rate of calls is measured.
	timedPerSecond = 5000
	maskEvery      = 100 * time.Millisecond
	// notBounding is before the times of all clocks.
	notBounding = math.MinInt64
)

// newAdaptive returns a limit that has room for the calls in flight, unless c.Limit is less.
func newAdaptive(epoch time.Time, c Config, limit *atomic.Uint32, inFlight int) *adaptive {
	a := &adaptive{epoch: epoch, limit: limit, adaptation: newAdaptation(cmp.Or(c.Limit, maxLimit), c.Queue.Target)}
	a.adaptation.limit = min(max(a.adaptation.limit, float64(inFlight)), a.adaptation.upper)
	a.started.Store(uint64(inFlight))
	a.probeAt.Store(notBounding)
	a.adaptation.begin(time.Since(epoch), uint64(inFlight))
	limit.Store(a.adaptation.wholeLimit())
	return a
}

// begin counts a call and returns the time it begins at, or untimed.
func (a *adaptive) begin() time.Duration {
	if a.started.Add(1)&a.mask.Load() != 0 {
		return untimed
	}
	return time.Since(a.epoch)
}

// end records the end of a call, whose caller allowed it a time, or 0 if that is not known.
// inFlight still includes it.
func (a *adaptive) end(start time.Duration, inFlight int, e ending, deadline time.Time) {
	if start == untimed {
		return
	}
	now := time.Since(a.epoch)
	var allowed time.Duration
	if !deadline.IsZero() {
		allowed = max(deadline.Sub(a.epoch)-start, 1)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.restartIfNew(now) || start > now { // the call began in another clock
		return
	}
	a.setMask(now)
	if a.reached.Load() {
		a.reached.Store(false)
		a.adaptation.lastUse = max(now, a.adaptation.now)
	}
	a.adaptation.advance(now, a.started.Load(), inFlight)
	switch e {
	case ignored:
		a.adaptation.recordIgnored(now - start)
	case left:
		a.adaptation.recordCancelled(now - start)
	case well:
		a.adaptation.recordSuccess(now-start, allowed)
	case failed:
		a.adaptation.recordFailure(now-start, allowed)
	case overloaded:
		a.adaptation.recordOverloaded(now - start)
	}
	a.store()
}

// tryRaise is called when the limit is reached, and reports whether there is room now. While the
// calls are bounded, a refused call takes the lock only if a probe is due.
func (a *adaptive) tryRaise(inFlight int) bool {
	now := time.Since(a.epoch)
	if now < time.Duration(a.probeAt.Load()) && now > time.Duration(a.passedAt.Load())-clock.ReadTolerance {
		if !a.reached.Load() {
			a.reached.Store(true)
		}
		return int(a.limit.Load()) > inFlight
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.restartIfNew(now)
	a.adaptation.advance(now, a.started.Load(), inFlight)
	a.adaptation.limitReached()
	a.store()
	return int(a.limit.Load()) > inFlight
}

// restartIfNew forgets everything if the clock is a new one: see clock.IsNew. It reports whether it
// did.
func (a *adaptive) restartIfNew(now time.Duration) bool {
	if !clock.IsNew(a.epoch, now, a.adaptation.now, clock.ReadTolerance) {
		return false
	}
	old := a.adaptation
	a.adaptation = newAdaptation(int(old.upper), old.queue)
	a.adaptation.retired = old.retired
	a.adaptation.begin(now, a.started.Load())
	a.checked, a.counted = now, a.started.Load()
	a.store()
	return true
}

// setUpper changes the upper bound of the limit, and the Target of the queue.
func (a *adaptive) setUpper(upper int, queue time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.adaptation.queue = queue
	a.adaptation.setUpper(upper)
	a.store()
}

// freeze freezes the limit: calls that end later do not change it.
func (a *adaptive) freeze() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.adaptation.retired = true
}

func (a *adaptive) store() {
	if a.adaptation.retired {
		return
	}
	probeAt := int64(notBounding)
	if a.adaptation.bounding {
		probeAt = int64(a.adaptation.probeAt())
	}
	if probeAt != a.probeAt.Load() {
		a.passedAt.Store(int64(a.adaptation.passedAt))
		a.probeAt.Store(probeAt)
	}
	if limit := a.adaptation.wholeLimit(); limit != a.limit.Load() {
		a.limit.Store(limit)
	}
}

// setMask selects the calls to time, so that about timedPerSecond are timed per second.
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
	a.adaptation.every = float64(mask + 1)
}
