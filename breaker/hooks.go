package breaker

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/weir-go/weir/internal/adminhook"
	"github.com/weir-go/weir/internal/keytext"
	"github.com/weir-go/weir/internal/report"
)

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
