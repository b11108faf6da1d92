package inflight

import (
	"container/heap"
	"container/list"
	"hash/maphash"
	"math"
)

// class holds the waiters of one priority. Its tenants take turns: see backlog.
type class struct {
	length  int
	pass    float64
	retries list.List // of *waiter, in order of arrival

	tenants map[uint64]*tenant // that wait or are ahead, by the hash of their names
	weight  float64            // of all tenants that wait
	last    float64            // the pass of the tenant that was served last
	turns   tenantHeap         // the tenants that wait, by pass
	loads   tenantHeap         // the tenants that wait, the one with the highest load first
	// The tenants that do not wait, but whose pass is later than last. If they were forgotten, a
	// tenant with few callers would get more slots than its weight says, because it has no waiter
	// after each of its turns.
	ahead tenantHeap
}

// waits reports whether a caller of the class waits. The class may be nil.
func (c *class) waits() bool { return c != nil && c.length > 0 }

// maxAhead bounds the memory for tenants that do not wait.
const maxAhead = 1000

// tenant holds the waiters of one tenant in one class. It does not hold the name, which may be long
// and may be part of a longer text.
type tenant struct {
	key     uint64
	weight  float64
	pass    float64
	waiters list.List // of *waiter, in order of arrival
	turn    int       // the index in class.turns or class.ahead
	loaded  int       // the index in class.loads
}

var tenantSeed = maphash.MakeSeed()

func tenantKey(name string) uint64 { return maphash.String(tenantSeed, name) }

func (t *tenant) oldest() *waiter { return t.waiters.Front().Value.(*waiter) }
func (t *tenant) newest() *waiter { return t.waiters.Back().Value.(*waiter) }

// load returns how many waiters the tenant has for its weight.
func (t *tenant) load() float64 { return float64(t.waiters.Len()) / t.weight }

// push puts a caller behind the others of its tenant.
func (c *class) push(w *waiter, weight float64) {
	t := c.tenant(w.caller.Tenant)
	w.tenant, w.place = t, t.waiters.PushBack(w)
	if w.caller.Retry {
		w.retry = c.retries.PushBack(w)
	}
	c.length++
	if t.waiters.Len() > 1 {
		c.weigh(t, weight)
		return
	}
	t.weight = weight
	c.weight += weight
	heap.Push(&c.turns, t)
	heap.Push(&c.loads, t)
}

// tenant returns a tenant that waits or begins to wait.
func (c *class) tenant(name string) *tenant {
	key := tenantKey(name)
	t := c.tenants[key]
	if t == nil {
		if c.tenants == nil {
			c.tenants, c.loads.byLoad = map[uint64]*tenant{}, true
		}
		t = &tenant{key: key, pass: c.last}
		c.tenants[key] = t
	} else if t.waiters.Len() == 0 {
		heap.Remove(&c.ahead, t.turn)
	}
	return t
}

// weigh sets the weight of a tenant that waits.
func (c *class) weigh(t *tenant, weight float64) {
	c.weight += weight - t.weight
	t.weight = weight
	heap.Fix(&c.loads, t.loaded)
}

// remove removes a waiter.
func (c *class) remove(w *waiter) {
	t := w.tenant
	t.waiters.Remove(w.place)
	if w.retry != nil {
		c.retries.Remove(w.retry)
	}
	if t.waiters.Len() > 0 {
		heap.Fix(&c.loads, t.loaded)
	} else {
		heap.Remove(&c.turns, t.turn)
		heap.Remove(&c.loads, t.loaded)
		c.weight -= t.weight
		heap.Push(&c.ahead, t)
		c.forgetTenants()
	}
	if c.length--; c.length == 0 {
		c.weight = 0 // exactly
	}
}

// charge counts a slot that a tenant gets.
func (c *class) charge(t *tenant) {
	c.last = t.pass
	t.pass += 1 / t.weight
	heap.Fix(&c.turns, t.turn)
	c.forgetTenants()
	if by := c.last; by > largestPass {
		c.last = 0
		for _, t := range c.tenants {
			t.pass -= by
		}
	}
}

// forgetTenants forgets the tenants that do not wait and are not ahead. If there are too many, it
// forgets those that are the least ahead.
func (c *class) forgetTenants() {
	for a := &c.ahead; len(a.list) > 0 && (a.list[0].pass <= c.last || len(a.list) > maxAhead); {
		delete(c.tenants, heap.Pop(a).(*tenant).key)
	}
}

// position returns the place of a caller among those of its class. It assumes that all tenants have
// enough waiters for their turns. So the place may be too late, but it is never beyond the end of
// the class.
func (c *class) position(name string, weight float64) float64 {
	if c == nil {
		return 1
	}
	n, all := 1.0, c.weight
	if t := c.tenants[tenantKey(name)]; t != nil && t.waiters.Len() > 0 {
		n, weight = n+float64(t.waiters.Len()), t.weight
	} else {
		all += weight
	}
	return min(math.Ceil(n*all/weight), float64(c.length+1))
}

// longerThan returns the tenant with the most waiters for its weight, or nil if a caller's tenant
// would have at least as many with the caller.
func (c *class) longerThan(name string, weight float64) *tenant {
	n, longest, key := 1, c.loads.list[0], tenantKey(name)
	if t := c.tenants[key]; t != nil {
		n += t.waiters.Len()
	}
	if longest.key == key || float64(n)/weight >= longest.load() {
		return nil
	}
	return longest
}
