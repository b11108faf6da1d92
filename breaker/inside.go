package breaker

import (
	"context"
	"math"
	"time"

	"github.com/weir-go/weir/internal/clock"
	"github.com/weir-go/weir/internal/friend"
	"github.com/weir-go/weir/internal/waiting"
	"github.com/weir-go/weir/window"
)

// Inside returns functions of breakers for the other packages of this module. Users cannot name the
// key.
func Inside(friend.Key) inside { return inside{} } //nolint:revive // only its methods are needed

// inside has the functions of breakers that gates and tests of this module use beyond the API.
type inside struct{}

// New is like New of the package, for a breaker that begins at t0, as a gate does.
func (inside) New(name string, c Config, t0 time.Time) *Breaker { return newAt(name, c, t0) }

// OriginOf returns the cause of a change, and its number among those of the breaker.
func (inside) OriginOf(c Change) (origin string, seq uint64) { return c.origin, c.seq }

// Admit is like Allow, but fills in a zero permit of the caller instead of returning a copy.
func (inside) Admit(b *Breaker, m *Permit) error { return b.allow(m, b.regime.Load(), unread) }

// AdmitClosedAt fills in a zero permit if b is closed and numbers no calls, and reports whether it
// did. d is the time since t0 of New. If AdmitClosedAt reports false, nothing was refused or
// counted, and AdmitAt decides.
func (inside) AdmitClosedAt(b *Breaker, d time.Duration, m *Permit) bool {
	p := b.regime.Load()
	if !p.fast || p.timed && !b.clock.IsOffset(d) {
		return false
	}
	m.breaker, m.issuer, m.start = b, p, d
	if p.counted {
		m.count()
	}
	return true
}

// AdmitClosed is like AdmitClosedAt, but reads the clock itself if b needs the time.
func (inside) AdmitClosed(b *Breaker, m *Permit) bool {
	p := b.regime.Load()
	if !p.fast {
		return false
	}
	if p.timed {
		m.start = b.now()
	}
	m.breaker, m.issuer = b, p
	if p.counted {
		m.count()
	}
	return true
}

// Drop makes a permit that AdmitClosed or AdmitClosedAt has filled in zero again.
func (inside) Drop(m *Permit) {
	if m.active {
		m.breaker.active.Add(-1)
	}
	*m = Permit{}
}

// AdmitAt is Admit at the time t.
func (inside) AdmitAt(b *Breaker, t time.Time, m *Permit) error {
	at := b.inClock(b.clock.At(t), clock.ReadTolerance)
	return b.allowAt(m, b.regime.Load(), at)
}

// CheckAt returns nil if AdmitAt would let a call through. If AdmitAt would refuse the call,
// CheckAt counts the refusal and returns its error. It acquires nothing.
func (inside) CheckAt(b *Breaker, t time.Time) error {
	if b.regime.Load().state == Closed {
		return nil
	}
	return b.check(b.justNow(t))
}

// Refuse refuses a call for the given reason, even if b has closed since, and counts the refusal.
func (inside) Refuse(b *Breaker, reason string) error {
	return b.refuse(&OpenError{
		Name: b.name, Key: b.member.text(), State: Open, Reason: reason, Until: b.date(b.now()),
	})
}

// Watch interrupts w once when b next opens or is forced open, or now if it is open. The goroutine
// that changes b does so, after the change and outside all locks.
func (i inside) Watch(b *Breaker, w waiting.Interrupter) {
	q := b.changes()
	q.mu.Lock()
	if q.watchers == nil {
		q.watchers = map[waiting.Interrupter]struct{}{}
	}
	q.watchers[w] = struct{}{}
	q.mu.Unlock()
	if b.regime.Load().passes == allCalls {
		return
	}
	// the time is read before the phase: see now
	if s := b.stateAt(b.peekNow()); (s == Open || s == ForcedOpen) && i.Unwatch(b, w) {
		w.Interrupt(waiting.Opened)
	}
}

// Unwatch ends Watch, and reports whether w was not interrupted.
func (inside) Unwatch(b *Breaker, w waiting.Interrupter) bool {
	q := b.changes()
	q.mu.Lock()
	defer q.mu.Unlock()
	_, found := q.watchers[w]
	delete(q.watchers, w)
	return found
}

// Judge returns the outcome of a call that returned err, or the Classify of the breaker if that
// decides: then the gate calls it, and JudgeAs afterwards. expired is that of JudgeAs. at is the
// time for Record, which is read before the gate releases a slot: reading the clock waits for
// atomic additions.
func (inside) Judge(ctx context.Context, m *Permit, err error) (o Outcome, expired bool, at time.Duration, classify func(error) Outcome) {
	if classify = m.issuer.rules.config.Classify; classify != nil {
		return Success, false, unread, classify
	}
	at = m.breaker.now()
	if err == nil {
		return Success, false, at, nil
	}
	return m.outcome(ctx, err, nil), m.expired, at, nil
}

// JudgeAs returns the outcome of a call that returned err and was judged as o, with a wait of after
// that the service asks for. expired reports that the call failed at its deadline, and that the
// outcome is Ignored because the breaker takes the deadline to be too short.
func (inside) JudgeAs(ctx context.Context, m *Permit, err error, after time.Duration, o Outcome) (_ Outcome, expired bool) {
	return m.judgeAs(ctx, err, after, o)
}

// Record records the outcome of a call that ended at a time, which may be clock.Unread. It uses the
// permit up, and reports whether the outcome counted. returned is false if the function that made
// the call did not return.
func (inside) Record(ctx context.Context, m *Permit, err error, o Outcome, at time.Duration, returned bool) bool {
	m.spent = true
	switch {
	case !o.Failed():
		return m.breaker.record(ctx, m, o, at, nil)
	case !returned:
		return m.recordDescribed(ctx, nil, o, at, kindPanic)
	default:
		return m.recordDescribed(ctx, err, o, at, kindResult)
	}
}

// HasLeft reports whether b was in a group that has evicted or forgotten its key.
func (inside) HasLeft(b *Breaker) bool { return b.member != nil && b.member.left.Load() }

// Gate returns the gate of a member of a group of gates, or nil for another breaker.
func (inside) Gate(b *Breaker) friend.Gate {
	if b.member == nil {
		return nil
	}
	return b.member.gate
}

// Reconfigure changes the config of b, which is in no group, to a valid one. The caller calls
// deliver, outside all locks, which calls the callback of b if the state has changed.
func (inside) Reconfigure(b *Breaker, c Config) (deliver func()) {
	t, r := time.Now(), newRules(c.orDefault())
	at := b.justNow(t)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.setRules(r, b.advance(at), t)
	return b.deliver
}

// Stretch returns by how much b lengthens a wait d that a service asks for at the time t: by
// share · longest / 2⁶⁴, where longest is the most that b adds.
func (inside) Stretch(b *Breaker, t time.Time, d time.Duration) (longest time.Duration, share uint64) {
	jitter := b.regime.Load().rules.config.maxStretch()
	return stretchTime(d, 0, jitter, math.MaxUint64) - d, hashTime(t)
}

// The methods at the time t, for tests that replay recorded behavior. The times of calls need not
// be those of the clock.

func (inside) AllowAt(b *Breaker, t time.Time) (m Permit, err error) {
	at := b.at(t)
	err = b.allow(&m, b.regime.Load(), at)
	return
}

func (inside) RecordAt(m *Permit, t time.Time, o Outcome) bool {
	return m.markUsed() && m.recordDescribed(context.Background(), nil, o, m.breaker.at(t), kindRecorded)
}

func (inside) StateAt(b *Breaker, t time.Time) State          { return b.stateAt(b.peekAt(t)) }
func (inside) CountsAt(b *Breaker, t time.Time) window.Counts { return b.counts(b.peekAt(t)) }

func (inside) ForceAt(b *Breaker, t time.Time, s State)           { b.forceAt(t, s, "") }
func (inside) ReleaseAt(b *Breaker, t time.Time)                  { b.releaseAt(t) }
func (inside) OpenForAt(b *Breaker, t time.Time, d time.Duration) { b.openForAt(t, d) }
func (inside) ResetAt(b *Breaker, t time.Time)                    { b.resetAt(t) }

// Inside returns functions of groups for the other packages of this module. Users cannot name the
// key.
func (g *Group[K]) Inside(friend.Key) insideGroup[K] { return insideGroup[K]{g} } //nolint:revive // only its methods are needed

type insideGroup[K comparable] struct{ group *Group[K] }

// SetGates makes the group one of gates. It must be called before the group is used.
func (i insideGroup[K]) SetGates(gates friend.GateMaker[K, Breaker]) { i.group.gates = gates }

// CanBecome reports whether the group accepts a valid config for Reconfigure.
func (i insideGroup[K]) CanBecome(c GroupConfig) bool { return i.group.canBecome(c) }

// Find returns the breaker of a key, or nil if the group does not have the key.
func (i insideGroup[K]) Find(key K) *Breaker {
	if m := i.group.members.Get(key); m != nil {
		return m.breaker
	}
	return nil
}
