package inflight

import (
	"container/heap"
	"container/list"
	"math"
	"time"
)

// backlog keeps the waiters in the order in which they get slots. It has neither lock nor clock.
//
// The priority classes take turns by stride scheduling (Waldspurger and Weihl, 1995), and so do the
// tenants within a class. Each class and each tenant has a pass, which grows by 1/weight with each
// slot. The one with the lowest pass is served next. A class or tenant that begins to wait starts
// at the pass of the class or tenant that was served last, so it cannot save up turns.
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
	classes [priorities]class
	pass    float64 // of the class that was served last

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

// class holds the waiters of one priority.
type class struct {
	length  int
	pass    float64
	last    float64 // the pass of the tenant that was served last
	weight  float64 // of all tenants that wait
	tenants map[string]*tenant
	turns   tenantHeap
	retries list.List // of *waiter, in order of arrival
}

// tenant holds the waiters of one tenant in one class.
type tenant struct {
	name    string
	weight  float64
	pass    float64
	waiters list.List // of *waiter, in order of arrival
	turn    int       // the index in the heap
}

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

// push puts a caller into the queue.
func (b *backlog) push(w *waiter) {
	if b.length == 0 {
		b.late = w.since
		if b.overloaded && w.since-b.emptied >= b.config.Target {
			b.overloaded, b.relapse = false, b.emptied+relapse*b.config.interval()
		}
	}
	c := &b.classes[w.caller.Priority.class()]
	c.pass = b.firstPass(w.caller.Priority.class())
	t := c.tenant(w.caller.Tenant, &b.config)
	w.tenant, w.place = t, t.waiters.PushBack(w)
	if w.caller.Retry {
		w.retry = c.retries.PushBack(w)
	}
	c.length++
	b.length++
	if b.config.Target > 0 {
		b.joined = append(b.joined, w.since)
	}
}

func (c *class) tenant(name string, config *Queue) *tenant {
	if t := c.tenants[name]; t != nil {
		return t
	}
	if c.tenants == nil {
		c.tenants = map[string]*tenant{}
	}
	t := &tenant{name: name, weight: config.tenantWeight(name), pass: c.last}
	c.tenants[name] = t
	c.weight += t.weight
	heap.Push(&c.turns, t)
	return t
}

// remove removes a waiter that leaves without a slot.
func (b *backlog) remove(w *waiter, now time.Duration) {
	c, t := &b.classes[w.caller.Priority.class()], w.tenant
	t.waiters.Remove(w.place)
	if w.retry != nil {
		c.retries.Remove(w.retry)
	}
	if t.waiters.Len() == 0 {
		heap.Remove(&c.turns, t.turn)
		delete(c.tenants, t.name)
		c.weight -= t.weight
	}
	if c.length--; c.length == 0 {
		c.weight = 0 // exactly
	}
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
	for i := range b.classes {
		if other := &b.classes[i]; other.length > 0 && (c == nil || other.pass < c.pass) {
			c = other
		}
	}
	t := c.turns[0]
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

func (t *tenant) oldest() *waiter { return t.waiters.Front().Value.(*waiter) }
func (t *tenant) newest() *waiter { return t.waiters.Back().Value.(*waiter) }

// serve removes a waiter that gets a slot.
func (b *backlog) serve(w *waiter, now time.Duration) {
	i := w.caller.Priority.class()
	c, t := &b.classes[i], w.tenant
	b.pass, c.last = c.pass, t.pass
	c.pass += 1 / b.config.classShare(i)
	t.pass += 1 / t.weight
	heap.Fix(&c.turns, t.turn)
	if b.config.Target == 0 || now-b.joined[0] <= b.config.Target {
		b.late = now
	} else if now-b.late >= b.delayUntilOverload(now) {
		b.overloaded = true
	}
	b.remove(w, now)
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
// if the oldest are served first and no other caller comes.
func (b *backlog) position(caller Caller) (place float64) {
	own := caller.Priority.class()
	place = b.classes[own].position(caller.Tenant, &b.config)
	pass := b.firstPass(own) + (place-1)/b.config.classShare(own)
	for i := range b.classes {
		if c := &b.classes[i]; i != own {
			turns := math.Ceil((pass - c.pass) * b.config.classShare(i))
			place += min(max(turns, 0), float64(c.length))
		}
	}
	return place
}

// firstPass returns the pass of a class from which a caller that joins now is counted.
func (b *backlog) firstPass(class int) float64 {
	c := &b.classes[class]
	if c.length == 0 {
		return max(c.pass, b.pass)
	}
	return c.pass
}

// position returns the place of a caller among those of its class. It assumes that all tenants have
// enough waiters for their turns. So the place may be too late, but it is never beyond the end of
// the class.
func (c *class) position(name string, config *Queue) float64 {
	n, all, weight := 1.0, c.weight, 0.0
	if t := c.tenants[name]; t != nil {
		n, weight = n+float64(t.waiters.Len()), t.weight
	} else {
		weight = config.tenantWeight(name)
		all += weight
	}
	return min(math.Ceil(n*all/weight), float64(c.length+1))
}

// longest returns how long a caller that comes now waits at most, or forever.
func (b *backlog) longest() time.Duration {
	switch {
	case b.config.Target == 0:
		return forever
	case b.overloaded:
		return b.config.Target
	default:
		return b.config.interval()
	}
}

// victim returns the waiter that has to leave a full backlog so that the caller can join it, or nil
// if the caller itself has to leave.
func (b *backlog) victim(caller Caller, now time.Duration) *waiter {
	lowest := len(b.classes) - 1
	for b.classes[lowest].length == 0 {
		lowest--
	}
	c := &b.classes[lowest]
	switch own := caller.Priority.class(); {
	case own > lowest, own == lowest && caller.Retry:
		return nil
	case c.retries.Len() > 0:
		return c.retries.Back().Value.(*waiter)
	case own < lowest:
		return b.lastServed(c.longest(), now)
	}
	longest := c.longest()
	own, name := 1.0, caller.Tenant
	if t := c.tenants[name]; t != nil {
		own += float64(t.waiters.Len())
	}
	if longest.name == name || own/b.config.tenantWeight(name) >= longest.load() {
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

// longest returns the tenant with the most waiters for its weight.
func (c *class) longest() (longest *tenant) {
	for _, t := range c.turns {
		if longest == nil || t.load() > longest.load() {
			longest = t
		}
	}
	return longest
}

func (t *tenant) load() float64 { return float64(t.waiters.Len()) / t.weight }
