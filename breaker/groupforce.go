package breaker

import (
	"sync"
	"sync/atomic"
	"time"
)

// groupOverride is an override of all keys of a group, including keys that are added later.
type groupOverride struct {
	mu  sync.Mutex               // held to change the override
	now atomic.Pointer[override] // nil before the first one
}

// load returns the override, which may be none.
func (o *groupOverride) load() (now override) {
	if p := o.now.Load(); p != nil {
		now = *p
	}
	return now
}

// changeOverride replaces the override of the group by the one that next returns, unless next
// returns false. why says who changes it, and why.
func (g *Group[K]) changeOverride(why string, next func(now override) (to override, ok bool)) (changed bool) {
	o := &g.override
	o.mu.Lock()
	to, changed := next(o.load())
	if changed {
		// stored first, so that the loop finds the keys that were added without this override
		o.now.Store(&to)
	}
	o.mu.Unlock()
	if !changed {
		return false
	}
	why = overrideReason(to.state, why)
	all := []*Breaker{g.unguarded}
	for _, b := range g.All() {
		all = append(all, b)
	}
	for _, b := range all {
		b.followGroup(why)
	}
	for _, b := range all {
		b.deliver()
	}
	return true
}

// followGroup is followOverride after the override of the group has changed. It leaves the delivery
// of the changes to its caller.
func (b *Breaker) followGroup(why string) {
	at := b.justNow(time.Now())
	b.mu.Lock()
	p := b.advance(at)
	b.followOverride(p, p.latest(at), why)
	b.mu.Unlock()
}
