package weir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/internal/clock"
	"github.com/weir-go/weir/internal/friend"
	"github.com/weir-go/weir/internal/verdict"
)

// Permit is the right to make one call through a [Gate]. It holds what the call has acquired: the
// permit of the breaker and the slot of MaxConcurrent or Adaptive. The outcome of the call is
// recorded with it, once, and this releases the slot. Right after Allow, defer a Record of a
// failure. This record counts only if nothing else was recorded, which happens after a panic or an
// early return. Call Done when the call has ended:
//
//	permit, err := gate.Allow(ctx)
//	if err != nil {
//		return err
//	}
//	defer permit.Record(ctx, nil, breaker.Failure)
//	err = send(ctx)
//	permit.Done(ctx, err)
//
// Do not defer Done: Go evaluates its arguments at the defer statement, where err is still nil.
//
// A permit that is forgotten keeps its slot until the garbage collector finds it. Do not copy a
// permit after its first use. The zero Permit is used up. Any goroutine may call Done and Record.
type Permit struct {
	breaker breaker.Permit

	// The call holds these besides. If it holds nothing, of is nil, and used is not used.
	of       *setup // what the gate was like when the call was allowed
	slot     slot
	began    time.Duration // of a gate with chances: when the call began
	test     bool          // likewise: the call is hopeless, and a test
	reported *reported     // nil unless the service has said what is left
	used     atomic.Bool
	lease    *lease // nil unless the permit may be forgotten
}

// ending is how a call has ended.
type ending struct {
	Outcome breaker.Outcome
	Context context.Context // of the call; nil if it is not known
	// Expired reports that the call failed at its deadline, and that the outcome is Ignored because
	// the breaker takes the deadline to be too short.
	Expired bool
}

// Done records the outcome of a call that was made with ctx and returned err, and reports whether
// it counted, as [breaker.Permit.Done] does.
func (p *Permit) Done(ctx context.Context, err error) bool {
	if p.of == nil {
		return p.breaker.Done(ctx, err)
	}
	return p.use() && p.end(ctx, err, nil, true)
}

// Record is like Done, but for a caller that has decided the outcome itself: see
// [breaker.Permit.Record].
func (p *Permit) Record(ctx context.Context, err error, o breaker.Outcome) bool {
	if p.of == nil {
		return p.breaker.Record(ctx, err, o)
	}
	if !p.use() {
		return false
	}
	p.release(ending{Outcome: o, Context: ctx})
	return inBreaker.Record(ctx, &p.breaker, err, o, clock.Unread, true)
}

// Run calls fn, records the result and returns the error of fn, as Gate.Run does. Do not call other
// methods of the permit until Run returns. Run panics if the permit is used up or fn is nil.
func (p *Permit) Run(ctx context.Context, fn func(context.Context) error) error {
	if fn == nil {
		panic(nilFunctionText)
	}
	if p.of != nil && !p.use() {
		panic("weir: the permit is used up")
	}
	return p.run(ctx, fn)
}

// SetRetryAfter sets how long the service asked not to be called: see
// [breaker.Permit.SetRetryAfter].
func (p *Permit) SetRetryAfter(d time.Duration) { p.breaker.SetRetryAfter(d) }

// run calls fn and records the result.
func (p *Permit) run(ctx context.Context, fn func(context.Context) error) (err error) {
	if p.of == nil {
		return p.breaker.Run(ctx, fn)
	}
	returned := false
	defer func() { p.end(ctx, err, nil, returned) }()
	err = fn(ctx)
	returned = true
	return err
}

// end releases what the call holds, and records the outcome of a call that returned err, or that
// did not return. judge replaces the Classify of the breaker, unless it is nil.
func (p *Permit) end(ctx context.Context, err error, judge func(error) breaker.Outcome, returned bool) bool {
	if !returned {
		o := verdict.Unreturned[breaker.Outcome](ctx)
		p.release(ending{Outcome: o, Context: ctx})
		return inBreaker.Record(ctx, &p.breaker, err, o, clock.Unread, false)
	}
	if judge != nil || err != nil {
		return p.endJudged(ctx, err, judge)
	}
	o, expired, at, judge := inBreaker.Judge(ctx, &p.breaker, nil)
	if judge != nil {
		return p.endJudged(ctx, err, judge)
	}
	if g := p.slot.gate; p.holdsOnlyOwnSlot() {
		if inBound.Vacate(g.inFlight) {
			inBound.Serve(g.inFlight)
		}
	} else {
		p.release(ending{Outcome: o, Context: ctx, Expired: expired})
	}
	return inBreaker.Record(ctx, &p.breaker, err, o, at, true)
}

// endJudged does the work of end for a call that a function of the user judges, or a method of err.
// If that panics, the call is ignored.
func (p *Permit) endJudged(ctx context.Context, err error, judge func(error) breaker.Outcome) (counted bool) {
	e, at := ending{Outcome: breaker.Ignored, Context: ctx}, clock.Unread
	defer func() {
		p.release(e)
		counted = inBreaker.Record(ctx, &p.breaker, err, e.Outcome, at, true)
	}()
	if judge == nil {
		o, expired, read, classify := inBreaker.Judge(ctx, &p.breaker, err)
		if classify == nil {
			e.Outcome, e.Expired, at = o, expired, read
			return
		}
		judge = classify
	}
	var f verdict.Findings
	o := verdict.Find(&f, ctx, err, judge)
	e.Outcome, e.Expired = inBreaker.JudgeAs(ctx, &p.breaker, err, f.After, o)
	return counted
}

// use marks the permit as used and reports whether it was unused.
func (p *Permit) use() bool { return !p.used.Load() && p.used.CompareAndSwap(false, true) }

// ownSlot is the start of a slot of takeOwnSlot.
const ownSlot = friend.Untimed - 1

// holdsOnlyOwnSlot reports whether all that release would do is to release a slot of takeOwnSlot.
// Then end does that itself: to call release costs 4 % of a gate with a MaxConcurrent.
func (p *Permit) holdsOnlyOwnSlot() bool { return p.slot.start == ownSlot && p.lease == nil }

// release tells the parts of the gate that a call has ended. It is called once, before the breaker
// records the outcome: a callback of the breaker may make another call.
func (p *Permit) release(e ending) {
	if p.of == nil {
		return
	}
	if p.lease != nil {
		p.lease.end()
		p.lease = nil
	}
	if p.of.throttle != nil {
		inThrottle.Record(p.of.throttle, e.Outcome)
	}
	p.slot.end(e)
	if p.reported != nil {
		p.reported.end()
	}
	if p.of.chances != nil {
		p.of.chances.ended(p.began, p.test, e.Outcome)
	}
}

// lease lets the garbage collector find a permit that was forgotten. Only the permit refers to it,
// and its cleanup does not. Leases are used again, because a cleanup costs more than most calls.
type lease struct{ held *heldSlot }

// heldSlot is the slot of the permit that has the lease.
type heldSlot struct {
	mu   sync.Mutex
	slot slot
}

var leases = sync.Pool{New: func() any {
	l := &lease{new(heldSlot)}
	runtime.AddCleanup(l, (*heldSlot).abandon, l.held)
	return l
}}

// releaseIfForgotten releases the slot when the garbage collector finds that the permit is not used
// any more.
func (p *Permit) releaseIfForgotten() {
	if p.slot.gate != nil {
		p.lease = leases.Get().(*lease)
		p.lease.held.set(p.slot)
	}
}

// end ends the lease of a permit that is used.
func (l *lease) end() {
	l.held.set(slot{})
	leases.Put(l) // reachable until here, so abandon does not run before set
}

func (h *heldSlot) set(s slot) {
	h.mu.Lock()
	h.slot = s
	h.mu.Unlock()
}

// abandon runs when a lease is not reachable any more: its permit was forgotten, or the pool has
// dropped it.
func (h *heldSlot) abandon() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.slot.gate != nil {
		h.slot.abandon()
	}
}

// slot is the slot that a call holds. The zero slot is none.
type slot struct {
	gate  *setup
	start time.Duration
}

// end releases the slot.
func (s slot) end(e ending) {
	if s.gate == nil {
		return
	}
	inBound.End(e.Context, s.gate.inFlight, max(s.start, friend.Untimed), e.Outcome, e.Expired)
	if s.gate.shared {
		s.gate.keyed.uncountShared()
	}
}

// release releases the slot of a call that is not made.
func (s slot) release() { s.end(ending{Outcome: breaker.Ignored}) }

// abandon releases the slot of a permit that the garbage collector has found.
func (s slot) abandon() {
	inBound.Abandon(s.gate.inFlight)
	if s.gate.shared {
		s.gate.keyed.uncountShared()
	}
}

// setOwnInFlight gives the gate a separate bound, which counts the calls that it allows without a
// wait. An adaptive bound records when each call begins, so the shortcut does not take its slots.
func (g *setup) setOwnInFlight(l *inflight.Limiter, adaptive bool) {
	g.inFlight, g.counting, g.fixed = l, true, !adaptive
}

// takeOwnSlot is takeSlotFast for a bound of the gate's own. It may fail although there is a slot.
// The compiler inlines it.
func (g *setup) takeOwnSlot(permit *Permit) bool {
	if !g.fixed || !inBound.TryOccupy(g.inFlight) {
		return false
	}
	permit.of, permit.slot = g, slot{g, ownSlot}
	return true
}

// takeSlotFast takes a slot for a call that was not refused so far, and counts the call.
func (g *setup) takeSlotFast(permit *Permit) bool {
	if g.counting { // without a key nothing is to be checked after the slot
		start, held, ok := inBound.Occupy(g.inFlight)
		if held {
			permit.of, permit.slot = g, slot{g, start}
		}
		return ok
	}
	s, ok := g.takeSlot(occupy)
	if ok {
		permit.of, permit.slot = g, s
		g.admissions().allowed.Add(1)
	}
	return ok
}

// occupy, occupyUncounted and waitToOccupy are how takeSlot and waitForSlot take a slot.
func occupy(l *inflight.Limiter) (start time.Duration, held, ok bool) { return inBound.Occupy(l) }

func occupyUncounted(l *inflight.Limiter) (start time.Duration, held, ok bool) {
	return inBound.OccupyUncounted(l)
}

func waitToOccupy(ctx context.Context, l *inflight.Limiter, maxWait time.Duration) (start time.Duration, held bool, err error) {
	return inBound.Wait(ctx, l, maxWait)
}

// takeSlot takes a slot if there is one. In shadow mode, a call may be allowed without a slot.
func (g *setup) takeSlot(occupy func(*inflight.Limiter) (time.Duration, bool, bool)) (s slot, ok bool) {
	for {
		now := g.boundedSetup()
		if now.inFlight == nil { // since Reconfigure
			return s, true
		}
		start, held, ok := occupy(now.inFlight)
		if !held {
			return s, ok
		}
		if taken := (slot{now, start}); taken.isOfPresentGate() {
			return taken, true
		}
	}
}

// isOfPresentGate releases the slot and returns false if the key of the gate was evicted or
// forgotten meanwhile, or has room or its own bound now. The function that evicts a key looks for
// slots after it has made the eviction visible, and isOfPresentGate looks for an eviction after the
// call has the slot. So at least one of the two functions sees what the other has done. A new gate
// of a key that gets room looks for calls without room in the same way: see sharing.
func (s slot) isOfPresentGate() bool {
	if s.gate.shared && !s.gate.keyed.countShared() {
		inBound.End(nil, s.gate.inFlight, s.start, breaker.Ignored, false) //nolint:staticcheck // there is no context
		return false
	}
	if s.gate.setupOfKey().Gate != s.gate.Gate {
		s.release()
		return false
	}
	return true
}

// currentSetup returns the setup itself. For a gate of a group, it returns the setup of the gate
// that decides about its calls: see keyedGate.current.
func (g *setup) currentSetup() *setup {
	if g.keyed == nil {
		return g
	}
	return g.keyed.current().setup.Load()
}

// setupOfKey returns the setup of member.ofKey.
func (g *setup) setupOfKey() *setup {
	if g.keyed == nil {
		return g
	}
	return g.keyed.ofKey().setup.Load()
}

// boundedSetup is setupOfKey for a call that is about to take a slot.
func (g *setup) boundedSetup() *setup {
	s := g.setupOfKey()
	if s.shared && s.keyed.ownBound() {
		s = s.Gate.setup.Load()
	}
	return s
}

// waitForSlot waits for a slot until last at the latest.
func (g *setup) waitForSlot(ctx context.Context, last time.Time, wait func(context.Context, *inflight.Limiter, time.Duration) (time.Duration, bool, error)) (s slot, err error) {
	for {
		now := g.boundedSetup()
		if now.inFlight == nil {
			return s, nil
		}
		start, held, err := wait(ctx, now.inFlight, max(last.Sub(g.now()), 0))
		if err != nil || !held {
			return s, err
		}
		if taken := (slot{now, start}); taken.isOfPresentGate() {
			return taken, nil
		}
	}
}

func (g *setup) refuseSlot(ctx context.Context) error {
	l := g.setupOfKey().inFlight
	if l == nil { // since Reconfigure
		l = g.inFlight
	}
	err := inBound.Refuse(ctx, l, g.name)
	if full, ok := errors.AsType[*inflight.FullError](err); ok && g.lacksRoom() {
		e := *full
		e.Name = g.nameOfBound(full.Name)
		return &e
	}
	return err
}

// lacksRoom reports whether the gate is that of all keys for which a group has no room.
func (g *Gate) lacksRoom() bool { return g.keyed != nil && !g.keyed.hasRoom() }

// nameOfBound returns the name, for an error, of a bound on calls in flight that may have a name.
func (g *Gate) nameOfBound(name string) string {
	if g.lacksRoom() {
		return fmt.Sprintf("%s, of all keys without room: MaxKeys is %d", g.name, g.keyed.maxKeys())
	}
	return cmp.Or(name, g.name)
}
