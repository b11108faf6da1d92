package breaker

import (
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/window"
)

// openPlaces bounds how many members of a group may be open. A member takes a place before it opens
// and gives it back when it closes, so half-open and recovering members hold a place: they refuse
// most calls too, and may open again. A member that is opened by hand takes a place even if none is
// free.
type openPlaces struct {
	share     atomic.Int64  // in parts of a billion, 0 for no bound
	members   *atomic.Int64 // of the group
	taken     atomic.Int64
	prevented atomic.Int64 // openings
}

// setShare rounds up, so that two of three keys may be open with a share of 2.0/3.
func (s *openPlaces) setShare(share float64) {
	parts := int64(0)
	if share > 0 {
		parts = max(int64(math.Ceil(share*float64(wholeRate)-1e-6)), 1)
	}
	s.share.Store(parts)
}

// take takes a place if one is free. There is always a place for one member.
func (s *openPlaces) take() bool {
	for {
		taken, share := s.taken.Load(), s.share.Load()
		if share != 0 && taken > 0 && (taken+1)*int64(wholeRate) > share*s.members.Load() {
			return false
		}
		if s.taken.CompareAndSwap(taken, taken+1) {
			return true
		}
	}
}

// joinPlaces counts b among the places of its group. No other goroutine has b yet.
func (b *Breaker) joinPlaces(s *openPlaces) {
	b.places = s
	b.updatePlace(b.current.Load())
}

// updatePlace takes a place if b refuses calls in phase p, and gives it back if b does not. The
// lock is held.
func (b *Breaker) updatePlace(p *current) {
	refuses := p.passes == noCalls || p.passes == onlyProbes || p.passes == shareOfCalls
	if b.places == nil || refuses == b.placed {
		return
	}
	b.placed = refuses
	if refuses {
		b.places.taken.Add(1)
	} else {
		b.places.taken.Add(-1)
	}
}

// leavePlaces gives back the place of b, which leaves its group, and takes none from now on.
func (b *Breaker) leavePlaces() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.placed {
		b.places.taken.Add(-1)
	}
	b.places, b.placed = nil, false
}

// takePlace takes a place for a breaker that is about to open because of its calls, and reports
// whether it got one. The lock is held.
func (b *Breaker) takePlace() bool {
	if b.places != nil && !b.placed {
		b.placed = b.places.take()
		return b.placed
	}
	return true
}

// stayClosed reports that a breaker did not open because there is no place. It does so at most once
// per cooldown, which is how often the breaker could have opened. The lock is held.
func (b *Breaker) stayClosed(p *current, at time.Duration, why cause, counts window.Counts) {
	at = p.latest(at)
	if at < p.prevented {
		return
	}
	p.prevented = addClamped(at, max(p.rules.config.Cooldown, time.Second))
	s := b.places
	s.prevented.Add(1)
	b.changes.push(Change{
		Name: b.name, Key: b.member.text(), At: b.date(at), From: p.state, To: p.state, origin: why.origin, Counts: counts,
		Reason: fmt.Sprintf("would open, but %d of %d keys are open, MaxOpen %.3g%%: %s",
			s.taken.Load(), s.members.Load(), float64(s.share.Load())*100/float64(wholeRate), why.reason),
	})
}
