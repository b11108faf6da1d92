package breaker

import (
	"sync"
	"sync/atomic"
	"time"
)

// groupOverride is an override of all keys of a group, which lies over the overrides of single
// keys.
type groupOverride[K comparable] struct {
	state atomic.Pointer[State] // of new keys; nil if there is none

	changing sync.Mutex  // held by forceAll and releaseAll, not during OnChange
	own      map[K]State // the overrides that keys had of their own; guarded by changing
}

// currentOverride returns the override, or "" if there is none.
func (o *groupOverride[K]) currentOverride() State {
	if s := o.state.Load(); s != nil {
		return *s
	}
	return ""
}

// forceAll overrides the states of all keys, including keys that are added later and keys without
// room in the group.
func (g *Group[K]) forceAll(s State, reason string) {
	o := &g.override
	var queues []*changeQueue
	defer func() { deliverAll(queues) }()
	o.changing.Lock()
	defer o.changing.Unlock()
	before := o.currentOverride()
	// stored first, so that the loop finds the keys that were added without this override
	o.state.Store(&s)
	owned := map[K]State{}
	for key, b := range g.All() {
		own := g.ownOverride(b, before)
		if own == "" && b.stateWithoutRefuse() == before && !b.isUnchanged() {
			own = o.own[key]
		}
		if own != "" {
			owned[key] = own
		}
		queues = append(queues, b.queueForce(time.Now(), s, reason))
	}
	o.own = owned
	without := ForcedClosed
	if s == ForcedOpen {
		without = s
	}
	g.unguarded.forceUnguarded(without, reason)
}

// releaseAll lifts the override of forceAll. Each key returns to the override that it had before.
// If the override of a key was changed since forceAll, the key keeps the changed one.
func (g *Group[K]) releaseAll(reason string) {
	o := &g.override
	var queues []*changeQueue
	defer func() { deliverAll(queues) }()
	o.changing.Lock()
	defer o.changing.Unlock()
	s := o.currentOverride()
	if s == "" {
		return
	}
	o.state.Store(nil)
	for key, b := range g.All() {
		if b.stateWithoutRefuse() != s {
			continue
		}
		own := o.own[key]
		if b.isUnchanged() {
			// the breaker did not change since forceAll, or its key was forgotten meanwhile
			own = g.ownOverride(b, s)
		}
		if own != "" {
			queues = append(queues, b.queueForce(time.Now(), own, reason))
		} else {
			queues = append(queues, b.queueRelease(time.Now(), reason))
		}
	}
	o.own = nil
	g.unguarded.forceUnguarded(ForcedClosed, reason)
}

// deliverAll delivers changes that were made under a lock.
func deliverAll(queues []*changeQueue) {
	for _, q := range queues {
		q.deliver()
	}
}

// resetAll resets all keys.
func (g *Group[K]) resetAll(reason string) {
	for _, b := range g.All() {
		b.resetFor(time.Now(), reason)
	}
}

// ownOverride returns the override that was set for the key itself, or "" if there is none. s is
// the override of the group.
func (g *Group[K]) ownOverride(b *Breaker, s State) State {
	own := b.stateWithoutRefuse()
	if b.isUnchanged() {
		own, s = g.rules.Load().config.Initial, ""
	}
	if own.isOverride() && own != s {
		return own
	}
	return ""
}

// isUnchanged reports whether the breaker is in the state that it was built in.
func (b *Breaker) isUnchanged() bool { return b.phase.Load().epoch == 0 }

// forceUnguarded is forceFor for the breaker that all keys without room share.
func (b *Breaker) forceUnguarded(s State, reason string) {
	at := b.now()
	b.mu.Lock()
	if p := b.advance(at); p.refuses() {
		b.replaceOverride(p, s)
	} else if p.state != s {
		b.override(p, s, p.latest(at), reason)
	}
	b.mu.Unlock()
	b.changes.deliver()
}

// forcedPhase returns the first phase of a breaker that begins in the override s instead of phase
// p.
func (p *phase) forcedPhase(s State) *phase {
	if p.state == s {
		return p
	}
	next := *p
	if p.under == nil {
		next.under = p
	}
	next.stay, next.reason = endlessStay(s, p.since), "forced"
	return &next
}
