package breaker

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/weir-go/weir/internal/adminhook"
	"github.com/weir-go/weir/internal/clock"
	"github.com/weir-go/weir/internal/gatehook"
	"github.com/weir-go/weir/internal/keytext"
	"github.com/weir-go/weir/internal/report"
)

// A gate uses these functions of a breaker, which are not part of the API.
var _ = func() bool {
	gatehook.Breaker = gatehook.Hooks[Breaker, Permit, Outcome]{
		Admit:       (*Breaker).admit,
		AdmitAfter:  (*Breaker).admitAfter,
		AdmitAt:     (*Breaker).admitAt,
		CheckAt:     (*Breaker).checkAt,
		Refuse:      (*Breaker).refuseFor,
		Watch:       (*Breaker).watch,
		Unwatch:     (*Breaker).unwatch,
		AdmitClosed: (*Breaker).admitClosed,
		Drop:        (*Permit).drop,
		Judge:       (*Permit).judge,
		JudgeAs:     (*Permit).judgeAs,
		Record:      (*Permit).recordJudged,
		HasLeft:     func(b *Breaker) bool { return b.member != nil && b.member.left.Load() },
		Find: func(group, key any) *Breaker {
			return group.(interface{ findAny(key any) *Breaker }).findAny(key)
		},
		Reconfigure: (*Breaker).setConfig,
		Attached:    (*Breaker).gatePlace,
		Stretch:     (*Breaker).stretchOfWait,
	}
	gatehook.Replay = gatehook.Replays[Breaker, State]{
		ForceAt:   (*Breaker).forceAt,
		ReleaseAt: (*Breaker).releaseAt,
		OpenForAt: (*Breaker).openForAt,
		ResetAt:   (*Breaker).resetAt,
	}
	return true
}()

// admit is like Allow, but fills in a zero permit of the caller instead of returning a copy.
func (b *Breaker) admit(m *Permit) error { return b.allow(m, b.phase.Load(), unread) }

// admitAfter fills in a zero permit if the breaker is closed and counts no calls in flight, and
// reports whether it did. d is the time since t0 of NewAt. If admitAfter reports false, nothing was
// refused or counted, and admitAt decides.
func (b *Breaker) admitAfter(d time.Duration, m *Permit) bool {
	p := b.phase.Load()
	if !p.fast || p.timed && !b.clock.IsOffset(d) {
		return false
	}
	m.breaker, m.phase, m.start = b, p, d
	if p.counted {
		m.count()
	}
	return true
}

// admitClosed is like admitAfter, but reads the clock itself if the breaker needs the time.
func (b *Breaker) admitClosed(m *Permit) bool {
	p := b.phase.Load()
	if !p.fast {
		return false
	}
	if p.timed {
		m.start = b.now()
	}
	m.breaker, m.phase = b, p
	if p.counted {
		m.count()
	}
	return true
}

// drop makes the permit of a call that is not made zero again. A closed breaker let the call
// through.
func (m *Permit) drop() {
	if m.active {
		m.breaker.active.Add(-1)
	}
	*m = Permit{}
}

// admitAt is admit at the time t.
func (b *Breaker) admitAt(t time.Time, m *Permit) error {
	at := b.inClock(b.clock.At(t), clock.ReadTolerance)
	return b.allowAt(m, b.phase.Load(), at)
}

// checkAt returns nil if AllowAt would let a call through. If AllowAt would refuse the call,
// checkAt counts the refusal and returns its error. It acquires nothing.
func (b *Breaker) checkAt(t time.Time) error {
	if b.phase.Load().state == Closed {
		return nil
	}
	return b.check(b.justNow(t))
}

// refuseFor refuses a call for the given reason, even if the breaker has closed since, and counts
// the refusal.
func (b *Breaker) refuseFor(reason string) error {
	return b.refuse(&OpenError{
		Name: b.name, Key: b.member.text(), State: Open, Reason: reason, Until: b.date(b.now()),
	})
}

// gatePlace returns where a group of gates keeps the gate of a member, or nil for a breaker that is
// not in a group.
func (b *Breaker) gatePlace() gatehook.Place {
	if b.member == nil || b.member.group == nil {
		return nil
	}
	return &b.member.gate
}

// Package admin uses breakers through these functions. Force, Release and Reset take the reason of
// a change, which names the user who made it.
var _ = func() bool {
	adminhook.OfBreaker = func(source any) (o adminhook.Object, ok bool) {
		s, ok := source.(interface{ adminObject() adminhook.Object })
		if ok {
			o = s.adminObject()
		}
		return o, ok
	}
	return true
}()

func (b *Breaker) adminObject() adminhook.Object {
	return adminhook.Object{
		Kind: "breaker", Name: b.name,
		State:    func() string { return string(b.State()) },
		Override: b.adminOverride(),
		Reset: func(_ context.Context, why string) error {
			b.resetFor(time.Now(), "reset "+why)
			return nil
		},
		Explain: b.Explain,
		Tripped: b.Tripped,
	}
}

func (g *Group[K]) adminObject() adminhook.Object {
	return adminhook.Object{
		Kind: "breaker_group", Name: g.name,
		State: func() string { return string(g.override.currentOverride()) },
		Override: &adminhook.Setting{
			Get: g.overrideValue,
			Set: func(v any, why string) adminhook.Value { return g.setAll(State(v.(string)), overrideReason(v, why)) },
			Restore: func(set, earlier adminhook.Value, why string) bool {
				return g.restoreAll(set.Number, earlier, overrideReason(earlier.V, why))
			},
		},
		Reset: func(_ context.Context, why string) error {
			g.resetAll("reset " + why)
			return nil
		},
		Members: func(yield func(string, adminhook.Object) bool) {
			for key, b := range g.All() {
				if !yield(keytext.Label(key), b.adminObject()) {
					return
				}
			}
		},
	}
}

// overrideReason returns the reason of a change to the override v.
func overrideReason(v any, why string) string {
	if v == "" {
		return "released " + why
	}
	return "forced " + why
}

// adminOverride returns the override of the breaker itself, without that of its group.
func (b *Breaker) adminOverride() *adminhook.Setting {
	return &adminhook.Setting{
		Get: func() adminhook.Value {
			number, s := b.overrideNumber(), b.overrideWithoutRefuse()
			b.ownUnder(number, func(_, own State) State {
				s = own
				return own
			})
			return adminhook.Value{V: string(s), Number: number}
		},
		Set: func(v any, why string) adminhook.Value {
			return adminhook.Value{V: v, Number: b.setOverride(time.Now(), State(v.(string)), overrideReason(v, why))}
		},
		Restore: func(set, earlier adminhook.Value, why string) (done bool) {
			b.changeUnderLock(time.Now(), func(b *Breaker, p *phase, at time.Duration) {
				if done = b.overrideSet == set.Number; !done {
					return
				}
				b.overrideSet = earlier.Number
				s := State(earlier.V.(string))
				b.ownUnder(earlier.Number, func(over, _ State) State {
					own := s
					s = over
					return own
				})
				b.changeOverride(p, s, at, overrideReason(string(s), why))
			})
			return done
		},
	}
}

// The live page reads breakers and groups through this function.
var _ = func() bool {
	report.Breakers = func(source any, yield func(*report.Breaker)) bool {
		r, ok := source.(interface {
			report(yield func(*report.Breaker))
		})
		if ok {
			r.report(yield)
		}
		return ok
	}
	return true
}()

func (b *Breaker) report(yield func(*report.Breaker)) { yield(b.reportNow()) }

// report yields the members that have series of their own.
func (g *Group[K]) report(yield func(*report.Breaker)) {
	for _, m := range g.members.All() {
		if m.own != nil {
			yield(m.breaker.reportNow())
		}
	}
}

func (b *Breaker) reportNow() *report.Breaker {
	at := b.peekNow()
	p := b.phase.Load()
	c := b.counts(at)
	r := &report.Breaker{Name: b.name, Key: b.member.text(), Incident: p.currentIncident(b.date), SlowRate: c.SlowRate(), Rules: p.rules}
	if p.rules.config.SlowRate > 0 {
		r.SlowLimit, r.SlowCall = p.rules.config.SlowRate, max(p.rules.config.SlowCall, 0)
	}
	if i := p.incidents; i != nil {
		r.Past = i.past
	}
	if r.Key != "" && p.rules.config.Latency {
		if l := b.Latency(); l.Count() > 0 {
			r.P50, r.P99 = l.Quantile(0.5), l.Quantile(0.99)
		}
	}
	switch now := p.stayAt(at); now.state {
	case Open:
		if now.until != math.MaxInt64 {
			r.Until = b.date(now.until)
		}
	case HalfOpen:
		r.Probes = int(c.Calls())
	case Recovering:
		b.mu.Lock()
		r.OneOf = p.live.ramp.oneOf
		b.mu.Unlock()
	default: // nothing more is known
	}
	b.reportFailures(r, p, c.Failures)
	return r
}

// reportFailures fills in why the breaker refuses calls, or the last failure in the window.
func (b *Breaker) reportFailures(r *report.Breaker, p *phase, failures int64) {
	if e := p.refusal; e != nil && r.Openings > 0 {
		r.Reason, r.Margin = e.Reason, e.Margin
		for _, f := range slices.Backward(e.LastFailures) {
			r.Failures = append(r.Failures, report.Failure(f))
		}
		return
	}
	if kept := b.failures.Load(); kept != nil && failures > 0 {
		if all := kept.snapshot(b.date); len(all) > 0 {
			r.Failures = []report.Failure{report.Failure(all[len(all)-1])}
		}
	}
}
