package weir

import (
	"sync"
	"time"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/internal/gatehook"
)

// crowd counts the calls in flight of each key without room, which share a bound. A key that gets
// room leaves the crowd when none of these calls is in flight any more. So no more than
// MaxConcurrent calls of a key are in flight, however it gets room.
type crowd[K comparable] struct {
	mu       sync.Mutex
	inFlight map[K]int // at least 1 each, so at most as many keys as the shared bound has slots
}

// join counts a call that has a slot of the shared bound. It returns false and counts nothing if
// the key has its own bound now.
func (k *keyedGate[K]) join() bool {
	c, room := &k.group.crowd, k.hasRoom()
	c.mu.Lock()
	defer c.mu.Unlock()
	if room && !k.crowded.Load() {
		return false
	}
	if c.inFlight == nil {
		c.inFlight = map[K]int{}
	}
	c.inFlight[k.hold.key]++
	return true
}

// leave undoes join.
func (k *keyedGate[K]) leave() {
	c := &k.group.crowd
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inFlight[k.hold.key]--; c.inFlight[k.hold.key] <= 0 {
		delete(c.inFlight, k.hold.key)
	}
}

func (k *keyedGate[K]) isInCrowd() bool {
	c := &k.group.crowd
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inFlight[k.hold.key] > 0
}

// ownBound gives a key that has room its own bound if none of its calls is in the crowd any more,
// and reports whether the setup of the gate was replaced.
func (k *keyedGate[K]) ownBound() bool {
	if !k.crowded.Load() || !k.leaveCrowd() {
		return false
	}
	k.group.waits.adopt()
	return true
}

// leaveCrowd replaces the setup of the gate if none of the key's calls is in the crowd.
func (k *keyedGate[K]) leaveCrowd() bool {
	g := k.group
	g.mu.Lock()
	defer g.mu.Unlock()
	g.crowd.mu.Lock()
	stays := g.crowd.inFlight[k.hold.key] > 0
	if !stays {
		k.crowded.Store(false)
	}
	g.crowd.mu.Unlock()
	if stays {
		return false
	}
	next := new(setup)
	k.apply(g.parts.Load(), next)
	k.setup.Store(next)
	return true
}

// crowdListener is the listener of a call that has a slot of the shared bound.
type crowdListener struct {
	gatehook.Listener[breaker.Outcome]
	keyed keyed
}

// Ended implements [gatehook.Listener].
func (l crowdListener) Ended(start time.Duration, e ending) {
	l.Listener.Ended(start, e)
	l.keyed.leave()
}

// abandon releases the slot of a permit that the garbage collector has found.
func (l crowdListener) abandon(bound *inflight.Limiter) {
	slotHooks.Abandon(bound)
	l.keyed.leave()
}
