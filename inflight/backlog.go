package inflight

import (
	"container/list"
	"math"
	"time"
)

// backlog keeps the waiters in the order in which they get slots. It has neither lock nor clock.
//
// The priority classes take turns by stride scheduling (Waldspurger and Weihl, 1995), and so do the
// tenants within a class. Each class and each tenant has a pass, which grows by 1/weight with each
// slot. The one with the lowest pass is served next. A class or tenant that begins to wait starts
// at its own pass or, if that is later, at that of the class or tenant that was served last. So it
// neither saves up turns while it does not wait, nor gets more turns by waiting again and again.
//
// Once the oldest caller of a tenant has waited for newestFirstAfter times Target, the newest
// caller of the tenant is served first. The oldest may come too late in any case, and so the
// answers at the beginning of an overload are not late. (Facebook's adaptive LIFO begins only with
// the overload.) If it is only a burst, the older callers are served afterwards.
//
// The backlog becomes overloaded when, for an Interval (see delayUntilOverload), every caller that
// was served would have waited for longer than Target in order of arrival. It stays overloaded
// until there has been no waiter for the time Target. A single moment without waiters is not
// enough: it happens at any load, because waits are short while the backlog is overloaded.
type backlog struct {
	config Queue
	length int
	// the time since which callers wait in order of arrival, if there is a Target
	joined  []time.Duration
	classes [priorities]*class // nil if no caller of the priority has waited
	pass    float64            // of the class that was served last

	overloaded bool
	// the time since which all served waiters had waited for longer than Target
	late    time.Duration
	emptied time.Duration // when the last waiter left
	relapse time.Duration // until when the last overload is remembered
}

// relapse is the number of intervals for which an overload is remembered after it has ended. During
// that time a quarter of an Interval is enough for the next overload, since a slight overload
// pauses now and then. CoDel, too, drops more at once if it was dropping shortly before.
const relapse = 2

// newestFirstAfter is a multiple of the Target. If the oldest caller of a tenant has waited longer,
// the newest caller of the tenant is served first. With a smaller multiple, the longest waits would
// grow if a service gets 95 % of the calls that it can serve.
const newestFirstAfter = 3

// forgetTurnsAfter is how long no caller must have waited until it no longer matters which tenant
// got how many slots before.
const forgetTurnsAfter = time.Second

// largestPass is small enough that a pass still grows by the smallest 1/weight.
const largestPass = 1e8

// waiter is a caller that waits.
type waiter struct {
	caller Caller
	since  time.Duration
	// receives when the waiter may have to leave earlier; closed when it has a slot or has to leave
	wake chan struct{}

	// Guarded by the lock of the queue.
	state  waiterState
	tenant *tenant
	place  *list.Element // in the list of its tenant
	retry  *list.Element // in the list of retries, or nil
}

// push puts a caller into the queue. weight is that of its tenant.
func (b *backlog) push(w *waiter, weight float64) {
	if b.length == 0 {
		b.resume(w.since)
	}
	i := w.caller.Priority.class()
	if b.classes[i] == nil {
		b.classes[i] = &class{}
	}
	c := b.classes[i]
	c.pass = b.firstPass(i)
	c.push(w, weight)
	b.length++
	if b.config.Target > 0 {
		b.joined = append(b.joined, w.since)
	}
}

// resume notes that a caller waits and none did before.
func (b *backlog) resume(now time.Duration) {
	b.late = now
	idle := now - b.emptied
	if newClock := idle < 0; newClock || idle >= forgetTurnsAfter {
		b.classes, b.pass = [priorities]*class{}, 0
		if newClock {
			b.overloaded, b.relapse = false, 0
		}
	}
	if b.overloaded && idle >= b.config.Target {
		b.overloaded, b.relapse = false, b.emptied+relapse*b.config.interval()
	}
}

// remove removes a waiter that leaves without a slot.
func (b *backlog) remove(w *waiter, now time.Duration) {
	b.classes[w.caller.Priority.class()].remove(w)
	if len(b.joined) > 0 {
		b.joined = b.joined[1:]
	}
	if b.length--; b.length == 0 {
		b.emptied = now
	}
}

// next returns the waiter whose turn it is. tooLong reports that it has waited too long and must
// leave without a slot. The backlog is not empty.
func (b *backlog) next(now time.Duration) (w *waiter, tooLong bool) {
	var c *class
	for _, other := range b.classes {
		if other.waits() && (c == nil || other.pass < c.pass) {
			c = other
		}
	}
	t := c.turns.list[0]
	switch oldest := t.oldest(); {
	case b.overloaded && now-oldest.since > b.config.Target:
		return oldest, true
	case b.newestFirst(t, now):
		return t.newest(), false
	default:
		return oldest, false
	}
}

// newestFirst reports whether the newest waiter of a tenant is served before the others.
func (b *backlog) newestFirst(t *tenant, now time.Duration) bool {
	if b.config.OldestFirst || b.config.Target == 0 {
		return false
	}
	return b.overloaded || now-t.oldest().since > newestFirstAfter*b.config.Target
}

// serve removes a waiter that gets a slot.
func (b *backlog) serve(w *waiter, now time.Duration) {
	i := w.caller.Priority.class()
	c := b.classes[i]
	b.pass = c.pass
	c.pass += 1 / b.config.classShare(i)
	b.boundPasses()
	c.charge(w.tenant)
	if b.config.Target == 0 || now-b.joined[0] <= b.config.Target {
		b.late = now
	} else if now-b.late >= b.delayUntilOverload(now) {
		b.overloaded = true
	}
	b.remove(w, now)
}

// boundPasses makes the passes of all classes smaller once they are large.
func (b *backlog) boundPasses() {
	if by := b.pass; by > largestPass {
		b.pass = 0
		for _, c := range b.classes {
			if c != nil {
				c.pass -= by
			}
		}
	}
}

// delayUntilOverload returns how long all waits must have been longer than Target until the backlog
// is overloaded.
func (b *backlog) delayUntilOverload(now time.Duration) time.Duration {
	if now < b.relapse {
		return max(b.config.interval()/4, b.config.Target)
	}
	return b.config.interval()
}

// position returns how many waiters would be served up to and including a caller that joined now,
// if the oldest are served first and no other caller comes. weight is that of the caller's tenant.
func (b *backlog) position(caller Caller, weight float64) (place float64) {
	own := caller.Priority.class()
	place = b.classes[own].position(caller.Tenant, weight)
	pass := b.firstPass(own) + (place-1)/b.config.classShare(own)
	for i, c := range b.classes {
		if i != own && c.waits() {
			turns := math.Ceil((pass - c.pass) * b.config.classShare(i))
			place += min(max(turns, 0), float64(c.length))
		}
	}
	return place
}

// firstPass returns the pass of a class from which a caller that joins now is counted.
func (b *backlog) firstPass(class int) float64 {
	switch c := b.classes[class]; {
	case c == nil:
		return b.pass
	case c.length == 0:
		return max(c.pass, b.pass)
	default:
		return c.pass
	}
}

// waitLimit is how long a caller waits at most.
type waitLimit struct {
	wait  time.Duration
	bound string // the field of Queue that says so, or ""
}

// shorter returns the shorter one of two limits.
func (a waitLimit) shorter(b waitLimit) waitLimit {
	if b.wait < a.wait {
		return b
	}
	return a
}

// longest returns how long a caller that comes now waits at most, or forever.
func (b *backlog) longest() waitLimit {
	switch {
	case b.config.Target == 0:
		return waitLimit{wait: forever}
	case b.overloaded:
		return b.config.targetLimit()
	default:
		return waitLimit{b.config.interval(), "Interval"}
	}
}

// victim returns the waiter that has to leave a full backlog so that the caller can join it, or nil
// if the caller itself has to leave. weight is that of the caller's tenant.
func (b *backlog) victim(caller Caller, weight float64, now time.Duration) *waiter {
	lowest := len(b.classes) - 1
	for !b.classes[lowest].waits() {
		lowest--
	}
	c := b.classes[lowest]
	own := caller.Priority.class()
	switch {
	case own > lowest, own == lowest && caller.Retry:
		return nil
	case c.retries.Len() > 0:
		return c.retries.Back().Value.(*waiter)
	}
	longest := c.loads.list[0]
	if own == lowest {
		longest = c.longerThan(caller.Tenant, weight)
	}
	if longest == nil {
		return nil
	}
	return b.lastServed(longest, now)
}

// lastServed returns the waiter of the tenant that would be served last.
func (b *backlog) lastServed(t *tenant, now time.Duration) *waiter {
	if b.newestFirst(t, now) {
		return t.oldest()
	}
	return t.newest()
}
