package breaker

import (
	"cmp"
	"time"

	"github.com/weir-go/weir/internal/tally"
	"github.com/weir-go/weir/window"
)

// Reconfigure replaces the Config. The state is kept: an open breaker stays open and recovers as
// before, calls in flight count, and a window of the same shape keeps its calls. A window of a
// different shape begins empty, and Totals are kept. Calls in flight when SlowCall or Latency is
// switched on are not timed, because their beginning was not recorded. If HalfOpenTimeout is
// changed, it starts again with the next probe. c.Force begins an override, and an empty c.Force
// lifts that of the Config before. If c is not valid, Reconfigure returns the error of c.Validate
// and changes nothing.
func (b *Breaker) Reconfigure(c Config) error { return b.reconfigureAt(time.Now(), c) }

// reconfigureAt is Reconfigure at the time t.
func (b *Breaker) reconfigureAt(t time.Time, c Config) error {
	if err := c.Validate(); err != nil {
		return err
	}
	r := b.member.rulesFor(c.orDefault())
	b.changeUnderLock(t, func(b *Breaker, p *regime, _ time.Duration) { b.setRules(r, p, t) })
	return nil
}

// setRules replaces the rules of the breaker, and of its shadow if it has one. The lock is held.
func (b *Breaker) setRules(r *rules, p *regime, t time.Time) {
	now := b.clock.At(t) // not yet the latest time: a shadow has its own
	b.replaceRegime(p.withRules(b, r, p.latest(now)), p.latest(now))
	if s := p.shadow; s != nil {
		shadow := s.advance(now)
		s.replaceRegime(shadow.withRules(s, shadowRules(r), shadow.latest(now)), shadow.latest(now))
	}
	why := cmp.Or(r.config.ForceReason, forcedReason)
	if r.config.Force == "" {
		why = "Force is empty"
	}
	b.followOverride(b.regime.Load(), p.latest(now), why)
}

// replaceRegime publishes a phase with other rules. By these rules the results so far of the
// probes, or of a round, may be enough to end the state or the round. The lock is held.
func (b *Breaker) replaceRegime(p *regime, at time.Duration) {
	b.regime.Store(p)
	switch {
	case p.state == HalfOpen:
		b.decideByProbes(p, *p.probed.Load(), at)
	case p.state != Recovering:
	case p.rules.config.Recovery == 0:
		b.enter(endlessStay(Closed, at), cause{reason: "Recovery is off", origin: byHand}, window.Counts{})
	case p.ramp.oneOf > 1:
		b.judgeRound(p, at)
	}
}

// withRules returns the phase with other rules from the given time on.
func (p *regime) withRules(b *Breaker, r *rules, at time.Duration) *regime {
	next, old := *p, p.rules
	next.rules = r
	next.derive(b)
	if !r.sameWindow(old) {
		next.past = p.past.withTally(p.tally, at)
		next.tally, next.floor = r.newTally(r.config.Latency, at), noCounts
		next.tally.SetStreak(p.tally.Streak())
	}
	next.tally.SetSlow(r.config.SlowCall)
	if next.state == Recovering {
		ramp := next.ramp
		if !r.sameWindow(old) {
			ramp.counted, ramp.floor = r.newTally(false, at), tally.Counts{}
		}
		ramp.counted.SetSlow(r.config.SlowCall)
	}
	if !next.runs || r.failureRate != old.failureRate {
		next.run.Clear() // its score was computed with a different rate
	}
	otherTimeout := r.config.HalfOpenTimeout != old.config.HalfOpenTimeout
	if next.state == HalfOpen && otherTimeout {
		next.endless() // HalfOpenTimeout begins with the next probe
	}
	if p.under != nil {
		under := *p.under
		under.rules = r
		if s := p.under.stayAt(at); s != p.under.stay() { // it was due by the old rules
			under.phase = p.under.moved(s)
		}
		if under.state == HalfOpen && otherTimeout {
			under.endless()
		}
		next.under = &under
	}
	return &next
}
