package weir

import (
	"context"
	"runtime"
	"time"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/internal/gatehook"
)

// slotHooks are functions of bounds on calls in flight that only gates use.
var slotHooks = gatehook.InFlight.(gatehook.Slots[inflight.Limiter, breaker.Outcome])

// slot is the slot that a call holds. The zero slot is none.
type slot struct {
	gate  *Gate
	start time.Duration
}

// release releases the slot of a call that is not made.
func (s slot) release() {
	if s.gate != nil {
		slotHooks.Listener(s.gate.inFlight).Ended(s.start, breaker.Ignored)
	}
}

// setInFlight gives the gate a bound on calls in flight.
func (g *Gate) setInFlight(l *inflight.Limiter) {
	g.inFlight, g.slots = l, slotHooks.Listener(l)
	if g.throttle != nil {
		g.slots = bothListeners{g.slots, throttleListener{g.throttle}}
	}
}

// bothListeners are told of the end of a call with a slot and a throttle.
type bothListeners struct {
	gatehook.Listener[breaker.Outcome]
	throttle throttleListener
}

// Ended implements [gatehook.Listener].
func (l bothListeners) Ended(start time.Duration, o breaker.Outcome) {
	l.throttle.Ended(start, o)
	l.Listener.Ended(start, o)
}

var _ = func() bool {
	gatehook.IsBusy = func(gate any) bool {
		g, ok := gate.(*Gate)
		return ok && g.inFlight != nil && g.inFlight.InFlight() > 0
	}
	return true
}()

// takeSlotFast takes a slot for a call that was not refused so far, and counts the call.
func (g *Gate) takeSlotFast(permit *breaker.Permit) bool {
	if g.ownWord != nil && gatehook.TryOccupy(g.ownWord, g.ownLimit) {
		return true
	}
	if g.counting { // no key, so there is nothing to look for after the slot
		start, held, ok := slotHooks.Occupy(g.inFlight)
		if held {
			hooks.Tell(gatehook.NoEscape(permit), g.slots, start)
		}
		return ok
	}
	_, ok := g.takeSlot(permit, slotHooks.Occupy)
	if ok {
		g.admissions.allowed.Add(1)
	}
	return ok
}

// acquireSlotFast acquires the slot of a call that has its token and the permit of a closed breaker.
func (g *Gate) acquireSlotFast(ctx context.Context, permit *breaker.Permit) error {
	if g.ownSlots != nil {
		hooks.Tell(gatehook.NoEscape(permit), g.ownSlots, 0)
	}
	if g.takeSlotFast(permit) {
		return nil
	}
	*permit = breaker.Permit{}
	return g.waitOrRefuseSlot(ctx, permit)
}

// newInFlight gives the gate a bound of its own, which counts the calls that it allows at once. An adaptive
// bound is told when each call begins, so the shortcuts do not take its slots.
func (g *Gate) newInFlight(c Config) {
	g.setInFlight(slotHooks.New(g.name, c.MaxConcurrent, c.Adaptive))
	g.counting = true
	if c.Adaptive {
		return
	}
	g.ownSlots = g.slots
	g.ownWord, g.ownLimit = slotHooks.Word(g.inFlight)
}

// takeSlot takes a slot if there is one. A call that shadow mode allows may have none.
func (g *Gate) takeSlot(permit *breaker.Permit, occupy func(*inflight.Limiter) (time.Duration, bool, bool)) (s slot, ok bool) {
	if g.inFlight == nil {
		return s, true
	}
	for {
		now := g.current()
		start, held, ok := occupy(now.inFlight)
		if !held {
			return s, ok
		}
		if s = (slot{now, start}); s.hold(permit) {
			return s, true
		}
	}
}

// hold lets the end of the call release the slot. It releases the slot and returns false if the key of
// the gate was evicted or forgotten meanwhile. The function that evicts a key looks for slots after it
// has made the eviction visible, and hold looks for an eviction after it has the slot, so one sees the
// other.
func (s slot) hold(permit *breaker.Permit) bool {
	if s.gate.current() != s.gate {
		s.release()
		return false
	}
	hooks.Tell(gatehook.NoEscape(permit), s.gate.slots, s.start)
	return true
}

// current returns the gate itself. For a member of a group it returns the present gate of its key,
// which is another one if the gate was evicted.
func (g *Gate) current() *Gate {
	if g.keyed == nil {
		return g
	}
	return g.keyed.current()
}

// acquireSlot acquires the slot and then the permit of a call that has its tokens.
func (g *Gate) acquireSlot(ctx context.Context, now time.Time, permit *breaker.Permit) error {
	s, ok := g.takeSlot(permit, slotHooks.OccupyUncounted)
	if !ok {
		return g.waitOrRefuseSlot(ctx, permit)
	}
	return g.acquirePermit(ctx, now, s, permit, &g.admissions.allowed)
}

// waitOrRefuseSlot continues a call that has its tokens and no slot.
func (g *Gate) waitOrRefuseSlot(ctx context.Context, permit *breaker.Permit) error {
	if g.maxWait() > 0 {
		return g.waitAndAcquire(ctx, tokens, permit)
	}
	g.Refund(ctx)
	return g.refuseSlot()
}

func (g *Gate) refuseSlot() error {
	g.admissions.refused.Add(1)
	return slotHooks.Refuse(g.current().inFlight, g.name)
}

// waitForSlot waits for a slot, at most until last.
func (g *Gate) waitForSlot(ctx context.Context, last time.Time, permit *breaker.Permit) (s slot, err error) {
	if g.inFlight == nil {
		return s, nil
	}
	for {
		now := g.current()
		start, held, err := slotHooks.Wait(ctx, now.inFlight, max(last.Sub(g.now()), 0))
		if err != nil || !held {
			return s, err
		}
		if s = (slot{now, start}); s.hold(permit) {
			return s, nil
		}
	}
}

// lease is the listener of a permit that Allow has returned. Only the permit refers to it, so it is
// garbage when the permit is.
type lease struct {
	gatehook.Listener[breaker.Outcome]
	cleanup runtime.Cleanup
}

// Ended implements [gatehook.Listener].
func (l *lease) Ended(start time.Duration, o breaker.Outcome) {
	l.cleanup.Stop()
	l.Listener.Ended(start, o)
	runtime.KeepAlive(l) // Stop needs it
}

// releaseIfForgotten releases the slot of the permit when the garbage collector finds that the permit
// is not used any more.
func releaseIfForgotten(permit *breaker.Permit) {
	listener, start := hooks.Told(gatehook.NoEscape(permit))
	of := listener
	if timed, ok := of.(*timedCall); ok {
		of = timed.Listener
	}
	if both, ok := of.(bothListeners); ok {
		of = both.Listener
	}
	bound := slotHooks.Of(of)
	if bound == nil { // in shadow mode
		return
	}
	l := &lease{Listener: listener}
	l.cleanup = runtime.AddCleanup(l, slotHooks.Abandon, bound)
	hooks.Tell(gatehook.NoEscape(permit), l, start)
}
