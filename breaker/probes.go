package breaker

import (
	"fmt"
	"math"
	"time"

	"github.com/weir-go/weir/window"
)

// probes are the places of a half-open phase. The breaker's lock guards them.
//
// A place is lent to a probe until it reports or its lease runs out. A probe with
// a verdict keeps its place for the rest of the phase, so that no more go out than
// the verdict needs; one that is ignored or unheard of gives it back.
//
// There are more places than Config.Probes where Reconfigure has made them fewer: a probe that
// is out stays out.
type probes []place

type place struct {
	use   use
	turn  uint32        // which loan of the place this is
	until time.Duration // when a lent place falls back
}

type use uint8

const (
	free use = iota
	lent
	used
)

// reset frees all places. Their turns go on, so that no permit of an earlier phase
// fits.
func (ps *probes) reset(n int) {
	if len(*ps) != n {
		*ps = make(probes, n)
	}
	for i := range *ps {
		(*ps)[i].use = free
	}
}

// find returns a place that can be lent at the given offset while at most so many are in use,
// and -1 where there is none.
func (ps *probes) find(at time.Duration, most int) int {
	inUse, vacant := 0, -1
	for i := range *ps {
		switch s := &(*ps)[i]; {
		case s.use == used || s.use == lent && at < s.until:
			inUse++
		case vacant < 0:
			vacant = i
		}
	}
	if inUse >= most {
		return -1
	}
	if vacant < 0 { // there are more since
		*ps = append(*ps, place{})
		vacant = len(*ps) - 1
	}
	return vacant
}

// lend gives out place i until the given offset. It reports whether the place was
// taken from a probe that is unheard of.
func (ps probes) lend(i int, until time.Duration) (turn uint32, abandoned bool) {
	s := &ps[i]
	abandoned = s.use == lent
	s.turn++
	s.use, s.until = lent, until
	return s.turn, abandoned
}

// give takes place i back from the given turn, and does nothing if it has been
// lent anew since.
func (ps probes) give(i int32, turn uint32, back use) {
	if s := &ps[i]; s.use == lent && s.turn == turn {
		s.use = back
	}
}

// probe lets a call through as a probe if a place can be had. The phase that the
// caller saw may be over by now.
func (b *Breaker) probe(m *Permit, at time.Duration) error {
	b.mu.Lock()
	p := b.pay(at)
	place, turn := -1, uint32(0)
	if p.state == HalfOpen {
		place, turn = b.lend(p, at)
	}
	refusal := b.refusal(p, place, at)
	b.mu.Unlock()
	b.changes.deliver()
	if refusal != nil {
		return b.refuse(refusal)
	}
	if p.state != HalfOpen { // closed, or under an override, since the caller looked
		return b.allow(m, b.phase.Load(), at)
	}
	m.give(b, p, at)
	m.place, m.turn = int32(place), turn
	return nil
}

// checkProbes is Check where all places may be lent, or the clock has opened the
// breaker again.
func (b *Breaker) checkProbes(at time.Duration) error {
	b.mu.Lock()
	p := b.pay(at)
	refusal := b.refusal(p, b.probes.find(at, p.rules.config.Probes), at)
	b.mu.Unlock()
	b.changes.deliver()
	if refusal != nil {
		return b.refuse(refusal)
	}
	return nil
}

// refusal returns the error for a call to which a place was found, or −1, and nil
// if it may pass. The lock is held.
func (b *Breaker) refusal(p *phase, place int, at time.Duration) *OpenError {
	switch {
	case p.state == Open || p.state == ForcedOpen:
		return b.openError(p)
	case p.state != HalfOpen || place >= 0:
		return nil
	}
	next := b.probes.next(at, p.rules.config.Probes)
	if next >= p.until { // it gives up before
		next = p.again().until
	}
	until := b.date(next)
	if e := p.live.full.Load(); e != nil && e.Until.Equal(until) {
		return e
	}
	e := &OpenError{Name: b.name, Key: b.hold.text(), State: HalfOpen, Reason: p.reason, Until: until}
	p.live.full.Store(e)
	return e
}

// next returns when a place that is lent falls back, so that fewer than so many are in use: the
// first one, or at the latest the last one if there are too many.
func (ps probes) next(at time.Duration, most int) time.Duration {
	first, last, inUse := time.Duration(math.MaxInt64), time.Duration(math.MinInt64), 0
	for _, s := range ps {
		switch {
		case s.use == used:
			inUse++
		case s.use == lent && s.until > at:
			inUse++
			first, last = min(first, s.until), max(last, s.until)
		}
	}
	if inUse > most && last > first {
		return last
	}
	return first
}

// lend lends a place, and returns −1 where none can be had. The lock is held.
func (b *Breaker) lend(p *phase, at time.Duration) (place int, turn uint32) {
	place = b.probes.find(at, p.rules.config.Probes)
	if place < 0 {
		return place, 0
	}
	turn, abandoned := b.probes.lend(place, add(p.latest(at), p.rules.config.ProbeTimeout))
	if abandoned {
		b.abandoned.Add(1)
	}
	if half := p.rules.config.HalfOpenTimeout; half > 0 && p.until == math.MaxInt64 {
		timed := *p
		timed.until = add(p.latest(at), half)
		b.phase.Store(&timed)
	}
	return place, turn
}

// probed records the result of a probe and ends the phase once there are enough. It
// reports false, and does nothing, if the phase is over.
func (b *Breaker) probed(m *Permit, o Outcome, at time.Duration) bool {
	b.mu.Lock()
	p := b.pay(at)
	if p.epoch != m.phase.epoch {
		b.mu.Unlock()
		b.changes.deliver()
		return false
	}
	took := at - m.start
	p.tally.Record(at, verdictOf(o), took)
	if m.after > 0 {
		p.ask(at, m.after)
	}
	if o != Success && o != Failure {
		b.probes.give(m.place, m.turn, free)
	} else {
		b.probes.give(m.place, m.turn, used)
		b.conclude(p, p.count(o, took > p.rules.config.SlowCall), at)
	}
	b.mu.Unlock()
	b.changes.deliver()
	return true
}

// count adds a result to those of the phase. The breaker's lock is held.
func (p *phase) count(o Outcome, slow bool) window.Counts {
	c := *p.live.probed.Load()
	if o == Failure {
		c.Failures++
		c.ConsecutiveFailures++
	} else {
		c.Successes++
		c.ConsecutiveFailures = 0
	}
	if slow {
		c.Slow++
		if o == Failure {
			c.SlowFailures++
		}
	}
	p.live.probed.Store(&c)
	return c
}

// conclude ends a half-open phase on the results of enough probes. The lock is held.
func (b *Breaker) conclude(p *phase, c window.Counts, at time.Duration) {
	r := p.rules
	enough := c.Calls() >= min(int64(r.config.MinCalls), int64(r.config.Probes))
	reason := ""
	switch {
	case r.failureRate == never && c.Failures > 0:
		reason = "a probe failed"
	case !enough:
		return
	case r.failureRate.reached(c.Failures, c.Calls()):
		reason = r.failed(c.Failures, c.Calls()) + ", of probes"
	case r.slowRate.reached(c.Slow, c.Calls()):
		reason = r.slowed(c.Slow, c.Calls()) + ", of probes"
	default:
		b.enter(stay{Closed, at, math.MaxInt64}, cause{fmt.Sprintf("%d of %d probes succeeded", c.Successes, c.Calls()), byCalls}, c)
		return
	}
	b.open(p, at, cause{reason, byCalls}, c)
}
