package weir

import (
	"math/bits"
	"sync"
	"time"
)

// SetRemaining tells the gate that its service still allows n calls until reset from now. p is the
// permit of the call whose response says so, and is not used up yet. The gate then allows no more
// calls than that, beside its own limits: calls in flight, which the service may not have counted
// yet, are subtracted. A further call waits until then as during a [Gate.Hold], or is refused with
// a [*limiter.LimitedError] whose Reason is limiter.Held. After the reset the gate allows as many
// calls as the service has left at most in the time before, until the service says more. If it says
// no more for as long again, its word is forgotten. The word of a later call replaces that of an
// earlier one, and among calls at the same time the least n counts.
//
// The time is stretched by a random share, as that of a Hold. A negative n counts as 0.
// SetRemaining does nothing if reset is 0 or less. Transports call it: see
// weirhttp.TransportConfig.
func (g *Gate) SetRemaining(p *Permit, n int, reset time.Duration) {
	g.setRemaining(p, callsLeft, n, reset)
}

// SetRemainingCost is SetRemaining for what calls cost: see [WithCost]. A call without WithCost
// costs 1.
func (g *Gate) SetRemainingCost(p *Permit, n int, reset time.Duration) {
	g.setRemaining(p, costLeft, n, reset)
}

// Larger numbers of a service are cut to these.
const (
	longestReset = 366 * 24 * time.Hour
	mostLeft     = 1 << 50
)

// The resources of which a service may say what is left.
const (
	callsLeft = iota
	costLeft
	resources
)

func (g *Gate) setRemaining(p *Permit, resource, n int, reset time.Duration) {
	if reset <= 0 {
		return
	}
	t := g.told.Load()
	if t == nil {
		g.told.CompareAndSwap(nil, new(told))
		t = g.told.Load()
	}
	now, reset := g.now(), min(reset, longestReset)
	longest, share := inBreaker.Stretch(g.breaker, now, reset)
	call := p.reported
	if call != nil && call.told != t { // it began under another word
		call = nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.report(call, resource, report{
		now: now.Sub(g.epoch), left: min(int64(max(n, 0)), mostLeft), reset: reset, longest: longest, share: share,
	})
}

// told is what a service has said that it still allows.
type told struct {
	mu    sync.Mutex
	left  [resources]remaining
	calls map[*reported]struct{} // in flight, since the service has said something
}

// reported is a call whose response may say what is left.
type reported struct {
	told    *told
	began   time.Duration
	weights [resources]int64 // what it takes; 0 if it is counted
}

// report is what a response says.
type report struct {
	now, reset, longest time.Duration
	left                int64
	share               uint64
}

// remaining is the last word of a service about one resource.
//
// A word is later than another if its call began after that was heard. Then it replaces the other:
// the number may be higher, because some services give back tokens all the time. Of calls at the
// same time it is not known which one the service counted last, and the least number counts. It has
// all calls that were answered. Those in flight are subtracted, because it may not have them.
type remaining struct {
	left        int64         // the least since the last reset
	inFlight    int64         // what the calls in flight take that have no answer
	most        int64         // the most that was left since the last reset
	until, last time.Duration // when the word is about, and when it is forgotten
	reset       time.Duration
	stretch     uint64        // the share of the longest stretch
	heard       time.Duration // when left was heard
	renewed     bool          // the time has passed, and there was no word since
	asked       bool          // a call has passed since the reset
}

const (
	// Resets that differ by less are the same, because services round them to seconds.
	sameReset = 1500 * time.Millisecond
	// A call that began longer ago has certainly reached the service and is counted.
	countedAfter = 10 * time.Second
)

// take lets a call pass, or returns until when it has to wait. weights are what it takes. If no
// word of the service holds any more, take returns neither.
func (t *told) take(now time.Duration, weights [resources]int64) (call *reported, until time.Duration, refused bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	over := true
	until = now
	for i := range t.left {
		r := &t.left[i]
		if r.isOver(now) {
			continue
		}
		over = false
		if !r.allows(now, weights[i]) {
			until, refused = max(until, r.nextWord(now)), true
		}
	}
	if over || refused {
		return nil, until, refused
	}
	call = &reported{told: t, began: now, weights: weights}
	for i := range t.left {
		t.left[i].inFlight += weights[i]
		t.left[i].asked = true
	}
	if t.calls == nil {
		t.calls = map[*reported]struct{}{}
	}
	t.calls[call] = struct{}{}
	return call, 0, false
}

// isOver reports whether the word does not hold any more, also because the clock has gone back.
func (r *remaining) isOver(now time.Duration) bool { return now >= r.last || r.last-now > 3*r.reset }

// nextWord returns when a refused call may ask again. After the reset, a response may say more
// soon.
func (r *remaining) nextWord(now time.Duration) time.Duration {
	if r.renewed {
		return min(r.last, now+time.Second)
	}
	return r.until
}

// allows reports whether a call may pass.
func (r *remaining) allows(now time.Duration, weight int64) bool {
	if now >= r.until && !r.renewed {
		r.renewed, r.asked, r.left, r.most, r.heard = true, false, r.most, 0, now-1
	}
	// one call may always pass after the reset, because only a response can say more
	return r.left-r.inFlight >= weight || r.renewed && !r.asked
}

// report takes note of what the response of a call says. call is nil if it began before the service
// had said anything. The lock of t is held.
func (t *told) report(call *reported, resource int, word report) {
	weight := int64(1)
	if call != nil {
		weight = max(call.weights[resource], 1)
		call.count(resource)
	}
	for old := range t.calls {
		if word.now-old.began > countedAfter {
			old.count(resource)
		}
	}
	r := &t.left[resource]
	isOver := r.isOver(word.now)
	if isOver {
		r.stretch, r.most = word.share, 0
	}
	part, _ := bits.Mul64(r.stretch, uint64(word.longest))
	reset := word.reset + time.Duration(part)
	until := word.now + reset
	switch later := until - r.until; {
	case isOver, later > sameReset, call != nil && call.began > r.heard:
		r.left, r.until, r.heard = word.left, until, word.now
	case r.renewed, later < -sameReset:
		return // it was counted before the last reset
	default:
		r.until = max(r.until, until)
		if word.left < r.left {
			r.left, r.heard = word.left, word.now
		}
	}
	r.renewed, r.reset = false, reset
	r.most = max(r.most, word.left+weight)
	r.last = r.until + r.reset
}

// count notes that the service has counted a call, or never will.
func (c *reported) count(resource int) {
	c.told.left[resource].inFlight -= c.weights[resource]
	c.weights[resource] = 0
}

// end takes note of the end of a call. If its response has not said what is left, the service may
// have counted it or not, so it counts.
func (c *reported) end() {
	c.told.mu.Lock()
	defer c.told.mu.Unlock()
	for i := range c.weights {
		c.told.left[i].left -= c.weights[i]
	}
	c.remove()
}

// giveBack takes note that a call is not made.
func (c *reported) giveBack() {
	c.told.mu.Lock()
	defer c.told.mu.Unlock()
	c.remove()
}

// remove removes a call. The lock is held.
func (c *reported) remove() {
	for i := range c.weights {
		c.count(i)
	}
	delete(c.told.calls, c)
}
