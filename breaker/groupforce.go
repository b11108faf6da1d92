package breaker

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/stat/view"
)

// groupOverride is an override of all keys of a group, which lies over the overrides of single
// keys that were set before it.
type groupOverride[K comparable] struct {
	state atomic.Pointer[State] // of new keys; nil if there is none

	changing sync.Mutex // held while the override changes, not during OnChange

	mu     sync.Mutex  // held for no longer than the fields below are used
	number uint64      // see view.Setting.Version
	own    map[K]State // the overrides that covered keys have of their own
}

// currentOverride returns the override, or "" if there is none.
func (o *groupOverride[K]) currentOverride() State {
	if s := o.state.Load(); s != nil {
		return *s
	}
	return ""
}

// covers returns the override of the group if it lies over an override of a key with the number, or
// "" if there is none or the override of the key was set later. The lock is held.
func (o *groupOverride[K]) covers(number uint64) State {
	if o.number > number {
		return o.currentOverride()
	}
	return ""
}

// settings returns the override with its version.
func (o *groupOverride[K]) settings() []view.Setting {
	o.mu.Lock()
	defer o.mu.Unlock()
	return stateSetting(o.currentOverride(), o.number)
}

// changeAll begins or ends the override of the group. It leaves the delivery of the changes to its
// caller, which holds the lock of the override.
func (g *Group[K]) changeAll(s State, number uint64, reason string) []*changeQueue {
	if s != "" {
		return g.forceAll(s, number, reason)
	}
	return g.releaseAll(number, reason)
}

// forceAll overrides the states of all keys, including keys that are added later and keys without
// room in the group.
func (g *Group[K]) forceAll(s State, number uint64, reason string) (queues []*changeQueue) {
	o := &g.override
	o.mu.Lock()
	before, owned := o.currentOverride(), o.own
	// stored first, so that the loop finds the keys that were added without this override
	o.state.Store(&s)
	o.number, o.own = number, map[K]State{}
	o.mu.Unlock()
	for key, b := range g.All() {
		own := g.ownOverride(b, before)
		if own == "" && b.stateWithoutRefuse() == before && !b.isUnchanged() {
			own = owned[key]
		}
		o.mu.Lock()
		if _, restored := o.own[key]; !restored && own != "" {
			o.own[key] = own
		}
		o.mu.Unlock()
		queues = append(queues, b.coverOverride(time.Now(), s, reason))
	}
	without := ForcedClosed
	if s == ForcedOpen {
		without = s
	}
	return append(queues, g.unguarded.forceUnguarded(without, reason))
}

// releaseAll lifts the override of forceAll. Each key returns to the override that it had before.
// If the override of a key was changed since forceAll, the key keeps the changed one.
func (g *Group[K]) releaseAll(number uint64, reason string) (queues []*changeQueue) {
	o := &g.override
	o.mu.Lock()
	s, own := o.currentOverride(), o.own
	o.state.Store(nil)
	before := o.number
	o.number, o.own = number, nil
	o.mu.Unlock()
	if s == "" {
		return nil
	}
	for key, b := range g.All() {
		if b.stateWithoutRefuse() != s || b.overrideNumber() > before {
			continue
		}
		to := own[key]
		if b.isUnchanged() {
			// the breaker did not change since forceAll, or its key was forgotten meanwhile
			to = g.ownOverride(b, s)
		}
		queues = append(queues, b.coverOverride(time.Now(), to, reason))
	}
	return append(queues, g.unguarded.forceUnguarded(ForcedClosed, reason))
}

// overrideNumber returns the number of the override of the breaker itself.
func (b *Breaker) overrideNumber() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.overrideSet
}

// ownUnder calls f if the override of a group covers the one of b with the number. The arguments
// are the override of the group, and the one that b has of its own below it. What f returns is that
// of b from then on.
func (b *Breaker) ownUnder(number uint64, f func(over, own State) State) {
	if b.member != nil && b.member.group != nil {
		b.member.group.ownUnder(b, number, f)
	}
}

func (m *member[K]) ownUnder(b *Breaker, number uint64, f func(over, own State) State) {
	g := m.of
	o := &g.override
	o.mu.Lock()
	defer o.mu.Unlock()
	over := o.covers(number)
	if over == "" || m.left.Load() {
		return
	}
	own := o.own[m.key]
	if b.isUnchanged() {
		own = g.ownOverride(b, over)
	}
	if own = f(over, own); o.own != nil {
		o.own[m.key] = own
	}
}

// deliverAll delivers changes that were made under a lock.
func deliverAll(queues []*changeQueue) {
	for _, q := range queues {
		q.deliver()
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
func (b *Breaker) isUnchanged() bool { return b.regime.Load().generation == 0 }

// forceUnguarded is coverOverride for the breaker that all keys without room share.
func (b *Breaker) forceUnguarded(s State, reason string) *changeQueue {
	at := b.now()
	b.mu.Lock()
	if p := b.advance(at); p.refuses() {
		b.replaceOverride(p, s)
	} else if p.state != s {
		b.override(p, s, p.latest(at), reason)
	}
	b.mu.Unlock()
	return b.changes
}

// forcedPhase returns the first phase of a breaker that begins in the override s instead of phase
// p.
func (p *regime) forcedPhase(s State) *regime {
	if p.state == s {
		return p
	}
	next := p.begin(endlessStay(s, p.since))
	if next.reason = "forced"; p.under == nil {
		next.under = p
	}
	return next
}
