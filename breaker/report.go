package breaker

import (
	"math"
	"slices"

	"github.com/weir-go/weir/internal/report"
)

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

func (b *Breaker) report(yield func(*report.Breaker)) { yield(b.forReads().reportNow()) }

// report yields the members that have series of their own.
func (g *Group[K]) report(yield func(*report.Breaker)) {
	g.mu.Lock()
	members := make([]*member[K], 0, len(g.observers.own))
	for _, s := range g.observers.own {
		members = append(members, s.member)
	}
	g.mu.Unlock()
	for _, m := range members {
		yield(m.breaker.reportNow())
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
