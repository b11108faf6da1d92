package weir

import (
	"sync"
	"time"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/internal/gatehook"
)

// sharing counts the calls in flight of each key without room, which share a bound. A key that gets
// room gets its own bound when none of these calls is in flight any more. So no more than
// MaxConcurrent calls of a key are in flight, however it gets room.
type sharing[K comparable] struct {
	mu       sync.Mutex
	inFlight map[K]int // at least 1 each, so at most as many keys as the shared bound has slots
}

// countShared counts a call that has a slot of the shared bound. It returns false and counts
// nothing if the key has its own bound now.
func (k *keyedGate[K]) countShared() bool {
	c, room := &k.group.sharing, k.hasRoom()
	c.mu.Lock()
	defer c.mu.Unlock()
	if room && !k.sharing.Load() {
		return false
	}
	if c.inFlight == nil {
		c.inFlight = map[K]int{}
	}
	c.inFlight[k.hold.key]++
	return true
}

// uncountShared undoes countShared.
func (k *keyedGate[K]) uncountShared() {
	c := &k.group.sharing
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inFlight[k.hold.key]--; c.inFlight[k.hold.key] <= 0 {
		delete(c.inFlight, k.hold.key)
	}
}

func (k *keyedGate[K]) hasShared() bool {
	c := &k.group.sharing
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inFlight[k.hold.key] > 0
}

// ownBound gives a key that has room its own bound if none of its calls has a slot of the shared
// bound any more, and reports whether the setup of the gate was replaced.
func (k *keyedGate[K]) ownBound() bool {
	if !k.sharing.Load() || !k.stopSharing() {
		return false
	}
	k.group.waits.adopt()
	return true
}

// stopSharing replaces the setup of the gate if none of the key's calls has a slot of the shared
// bound.
func (k *keyedGate[K]) stopSharing() bool {
	g := k.group
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sharing.mu.Lock()
	stays := g.sharing.inFlight[k.hold.key] > 0
	if !stays {
		k.sharing.Store(false)
	}
	g.sharing.mu.Unlock()
	if stays {
		return false
	}
	next := new(setup)
	k.apply(g.parts.Load(), next)
	k.setup.Store(next)
	return true
}

// sharedListener is the listener of a call that has a slot of the shared bound.
type sharedListener struct {
	gatehook.Listener[breaker.Outcome]
	keyed keyed
}

// Ended implements [gatehook.Listener].
func (l sharedListener) Ended(start time.Duration, e ending) {
	l.Listener.Ended(start, e)
	l.keyed.uncountShared()
}

// abandon releases the slot of a permit that the garbage collector has found.
func (l sharedListener) abandon(bound *inflight.Limiter) {
	slotHooks.Abandon(bound)
	l.keyed.uncountShared()
}
