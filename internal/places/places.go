// Package places computes when refused callers of a limiter should retry: each at a different
// moment, at the rate at which tokens return. It reserves no token.
package places

import (
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/clock"
)

// Horizon is how much later than the first moment the last one can be. If all moments until then
// are taken, they are given again from the first one on. So callers that never come back delay the
// others by at most that long.
const Horizon = time.Minute

// Places gives the moments of one limit. All methods are safe for concurrent use.
type Places struct {
	epoch    time.Time
	interval atomic.Int64 // between two tokens, in nanoseconds
	refused  atomic.Int64 // callers that have not asked for a moment
	next     atomic.Int64 // the next moment, in nanoseconds since the epoch
	latest   atomic.Int64 // the time of a late call of After, in nanoseconds since the epoch
	even     Even         // see between
}

// New returns Places of which no moment is taken.
func New() *Places { return &Places{epoch: time.Now()} }

// Refuse counts a refused caller. A token comes back once per interval.
func (p *Places) Refuse(interval time.Duration) {
	p.interval.Store(int64(interval))
	p.refused.Add(1)
}

// After returns how long a refused caller should wait. next is when the next token is there. A time
// that has passed counts as now. A caller that asks again, for example for a log, takes no moment
// from the others: once there have been more questions than refusals, it gets a moment between
// next and the last one that was given.
func (p *Places) After(next time.Time) time.Duration {
	now := time.Since(p.epoch)
	p.noteTime(now)
	first := max(next.Sub(p.epoch), now)
	if !p.claim() {
		return p.momentAfter(first) - now
	}
	return p.Take(first, time.Duration(p.interval.Load())) - now
}

// noteTime forgets the moments that were given if the clock is another one than before: see
// clock.IsNew.
func (p *Places) noteTime(now time.Duration) {
	switch latest := p.latest.Load(); {
	case clock.IsNew(p.epoch, now, time.Duration(latest), clock.ReadTolerance):
		p.latest.Store(int64(now))
		p.next.Store(int64(now))
	case int64(now) > latest:
		p.latest.CompareAndSwap(latest, int64(now))
	}
}

// claim reports whether some refused caller has not yet asked when to retry. If so, it counts one
// of them as having asked.
func (p *Places) claim() bool {
	for n := p.refused.Load(); n > 0; n = p.refused.Load() {
		if p.refused.CompareAndSwap(n, n-1) {
			return true
		}
	}
	return false
}

// Take returns the next moment from first on. Moments are times since any origin.
func (p *Places) Take(first, interval time.Duration) time.Duration {
	for {
		old := p.next.Load()
		at := max(first, time.Duration(old))
		if at-first > Horizon {
			at = first
		}
		if p.next.CompareAndSwap(old, int64(at+interval)) {
			return at
		}
	}
}

// momentAfter returns a moment from first to the last one that was given.
func (p *Places) momentAfter(first time.Duration) time.Duration {
	last := time.Duration(p.next.Load() - p.interval.Load())
	return first + p.even.Next(min(max(last-first, 0), Horizon))
}
