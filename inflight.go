package weir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/internal/gatehook"
	"github.com/weir-go/weir/limiter"
)

// slotHooks are functions of bounds on calls in flight that only gates use.
var slotHooks = gatehook.InFlight.(gatehook.Slots[inflight.Limiter, breaker.Outcome])

// ending is how a call has ended.
type ending = gatehook.Ending[breaker.Outcome]

// slot is the slot that a call holds. The zero slot is none.
type slot struct {
	gate  *setup
	start time.Duration
}

// release releases the slot of a call that is not made.
func (s slot) release() {
	if s.gate == nil {
		return
	}
	slotHooks.Listener(s.gate.inFlight).Ended(s.start, ending{Outcome: breaker.Ignored})
	if s.gate.shared {
		s.gate.keyed.uncountShared()
	}
}

// setInFlight gives the gate a bound on calls in flight.
func (g *setup) setInFlight(l *inflight.Limiter) {
	g.inFlight, g.slots = l, slotHooks.Listener(l)
	if g.throttle != nil {
		g.slots = bothListeners{g.slots, throttleListener{g.throttle}}
	}
}

// bothListeners is the listener of a call that holds a slot and is counted by a throttle.
type bothListeners struct {
	gatehook.Listener[breaker.Outcome]
	throttle throttleListener
}

// Ended implements [gatehook.Listener].
func (l bothListeners) Ended(start time.Duration, e ending) {
	l.throttle.Ended(start, e)
	l.Listener.Ended(start, e)
}

var _ = func() bool {
	gatehook.IsBusy = func(gate any) bool {
		g, ok := gate.(*Gate)
		return ok && g.keyed.isBusy()
	}
	return true
}()

// takeSlotFast takes a slot for a call that was not refused so far, and counts the call.
func (g *setup) takeSlotFast(permit *breaker.Permit) bool {
	if g.ownWord != nil && gatehook.TryOccupy(g.ownWord, g.ownLimit) {
		return true
	}
	if g.counting { // without a key nothing is to be checked after the slot
		start, held, ok := slotHooks.Occupy(g.inFlight)
		if held {
			hooks.Tell(gatehook.NoEscape(permit), g.slots, start)
		}
		return ok
	}
	s, ok := g.takeSlot(slotHooks.Occupy)
	if ok {
		s.hold(permit)
		g.admissions.allowed.Add(1)
	}
	return ok
}

// acquireSlotFast acquires the slot of a call that has its token and the permit of a closed
// breaker.
func (g *setup) acquireSlotFast(ctx context.Context, at time.Duration, permit *breaker.Permit) error {
	if g.ownSlots != nil {
		hooks.Tell(gatehook.NoEscape(permit), g.ownSlots, 0)
	}
	if g.takeSlotFast(permit) {
		return nil
	}
	*permit = breaker.Permit{}
	return g.waitOrRefuseSlot(ctx, tokens{local: takenFast(g.bucket, at, 1)}, target{permit: permit})
}

// setOwnInFlight gives the gate a separate bound, which counts the calls that it allows without a
// wait. An adaptive bound records when each call begins, so the shortcuts do not take its slots.
func (g *setup) setOwnInFlight(l *inflight.Limiter, adaptive bool) {
	g.setInFlight(l)
	g.counting = true
	if adaptive {
		return
	}
	g.ownSlots = slotHooks.UntimedListener(l)
	g.ownWord, g.ownLimit = slotHooks.Word(g.inFlight)
}

// takeSlot takes a slot if there is one. In shadow mode, a call may be allowed without a slot.
func (g *setup) takeSlot(occupy func(*inflight.Limiter) (time.Duration, bool, bool)) (s slot, ok bool) {
	if g.inFlight == nil {
		return s, true
	}
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

// hold arranges that the end of the call releases the slot. It is the last step before the call, so
// that no permit refers to a slot that was released.
func (s slot) hold(permit *breaker.Permit) {
	if s.gate != nil {
		hooks.Tell(gatehook.NoEscape(permit), s.gate.slots, s.start)
	}
}

// isOfPresentGate releases the slot and returns false if the key of the gate was evicted or
// forgotten meanwhile, or has room or its own bound now. The function that evicts a key looks for
// slots after it has made the eviction visible, and isOfPresentGate looks for an eviction after the
// call has the slot. So at least one of the two functions sees what the other has done. A new gate
// of a key that gets room looks for calls without room in the same way: see sharing.
func (s slot) isOfPresentGate() bool {
	if s.gate.shared && !s.gate.keyed.countShared() {
		slotHooks.Listener(s.gate.inFlight).Ended(s.start, ending{Outcome: breaker.Ignored})
		return false
	}
	if s.gate.currentSetup().Gate != s.gate.Gate {
		s.release()
		return false
	}
	return true
}

// currentSetup returns the setup itself. For a gate of a group, it returns the setup of the gate
// that the key has now. That is another gate if this one was evicted.
func (g *setup) currentSetup() *setup {
	if g.keyed == nil {
		return g
	}
	return g.keyed.current().setup.Load()
}

// boundedSetup is currentSetup for a call that is about to take a slot.
func (g *setup) boundedSetup() *setup {
	s := g.currentSetup()
	if s.shared && s.keyed.ownBound() {
		s = s.Gate.setup.Load()
	}
	return s
}

// acquireSlot acquires the slot and then the permit of a call that has its tokens.
func (g *setup) acquireSlot(ctx context.Context, now time.Time, t tokens, to target) error {
	s, ok := g.takeSlot(slotHooks.OccupyUncounted)
	if !ok {
		return g.waitOrRefuseSlot(ctx, t, to)
	}
	return g.acquirePermit(ctx, now, t, s, to, &g.admissions.allowed)
}

// waitOrRefuseSlot continues a call that has its tokens and no slot.
func (g *setup) waitOrRefuseSlot(ctx context.Context, t tokens, to target) error {
	if g.longestWait > 0 {
		t.local.Refund(1)
		t.local = limiter.Reservation{}
		return g.waitAndAcquire(ctx, &wait{tokens: t, lacksSlot: true}, to)
	}
	g.giveBack(ctx, &t)
	return g.refuseSlot()
}

func (g *setup) refuseSlot() error {
	g.countRefused()
	l := g.currentSetup().inFlight
	if l == nil { // since Reconfigure
		l = g.inFlight
	}
	err := slotHooks.Refuse(l, g.name)
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

// waitForSlot waits for a slot until last at the latest.
func (g *setup) waitForSlot(ctx context.Context, last time.Time) (s slot, err error) {
	if g.inFlight == nil {
		return s, nil
	}
	for {
		now := g.boundedSetup()
		if now.inFlight == nil {
			return s, nil
		}
		start, held, err := slotHooks.Wait(ctx, now.inFlight, max(last.Sub(g.now()), 0))
		if err != nil || !held {
			return s, err
		}
		if taken := (slot{now, start}); taken.isOfPresentGate() {
			return taken, nil
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
func (l *lease) Ended(start time.Duration, e ending) {
	l.cleanup.Stop()
	l.Listener.Ended(start, e)
	runtime.KeepAlive(l) // l must be reachable during Stop
}

// releaseIfForgotten releases the slot of the permit when the garbage collector finds that the
// permit is not used any more.
func releaseIfForgotten(permit *breaker.Permit) {
	listener, start := hooks.Told(gatehook.NoEscape(permit))
	of := listener
	if timed, ok := of.(*timedCall); ok {
		of = timed.Listener
	}
	if both, ok := of.(bothListeners); ok {
		of = both.Listener
	}
	abandon := slotHooks.Abandon
	if shared, ok := of.(sharedListener); ok {
		of, abandon = shared.Listener, shared.abandon
	}
	bound := slotHooks.Of(of)
	if bound == nil { // in shadow mode
		return
	}
	l := &lease{Listener: listener}
	l.cleanup = runtime.AddCleanup(l, abandon, bound)
	hooks.Tell(gatehook.NoEscape(permit), l, start)
}
