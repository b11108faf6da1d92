package breaker_test

import (
	"fmt"
	"math"
	"time"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/window"
)

// modelBreaker is a naive breaker, written from the documentation: one call at a time, a list of
// all results, and every count computed from that list when it is needed. Times are offsets from
// t0.
//
// The rules for times are as follows. A time is compared with deadlines as it was given. So a call
// at a stale time is refused if it would have been refused at that time. A result or a state that
// is given a stale time gets the beginning of the newest bucket or of the present stay instead,
// whichever is later. A transition that is due is visible at once. It is added to the changes by
// the next call, refusal, result of the present stay, or administrative method.
type modelBreaker struct {
	config breaker.Config // with every default written out

	stay    modelStay
	under   *modelStay    // the stay under an override
	forced  breaker.State // the override by hand, "" for none
	forcing string        // its reason
	visit   int           // the number of the stay, to which permits belong
	from    int           // the index of the first result that is judged
	streak  int64         // consecutive failures since the stay began
	refused int64         // since the stay began
	shadow  *modelBreaker // Shadow: a breaker that began with the stay
	told    int           // Shadow: how many changes of the shadow were read
	places  []*modelCall  // HalfOpen: nil is free
	probed  window.Counts // HalfOpen: the results of the probes
	ramp    modelRamp     // Recovering

	usual       *modelUsual
	sample      *modelSample // nil if calls are not sampled
	earlier     *modelSample // the one before
	sampledFrom time.Duration
	clean       bool          // the window was found clean, and nothing bad was recorded since
	rollAt      time.Duration // when a result is judged even if the window is clean

	runBegan time.Duration  // when the run began
	run      modelResults   // the results judged while closed, since Reconfigure last cleared them
	results  []modelResult  // in the order in which they came
	newest   int64          // the bucket of the last result
	evidence *window.Counts // what Config.SharedCounts returns

	totals                                       window.Totals
	late, abandoned, shadowOpened, shadowRefused int64
	overdue                                      int64 // Recovering: rounds without results
	changes                                      []breaker.Change
}

// modelStay is a stay in a state.
type modelStay struct {
	state    breaker.State
	since    time.Duration
	until    time.Duration // modelNever if time does not end it
	wait     time.Duration // Open: how long it was to last when it began
	reason   string        // why it opened
	tripped  window.Counts // the counts that opened it
	rounds   int           // rounds of probes and recoveries that failed in a row
	byRun    bool          // a run of failures opened it, or opens it
	refused  int64         // the calls that were refused before it opened
	spare    time.Duration // after a run: for how long calls may be refused after a failed probe
	spareTo  time.Duration // until when they may be
	cooldown time.Duration // as it was when it opened
	asked    time.Duration // until when the service asked not to be called
}

// modelCall is a call that was let through.
type modelCall struct {
	visit   int
	start   time.Duration
	timed   bool // its start was noted
	used    bool // a result was recorded
	place   int
	shadow  *modelCall    // Shadow: the call of the shadow, if it let the call through
	lease   time.Duration // HalfOpen: when its slot falls free
	verdict bool          // HalfOpen: the probe has a result
	passed  time.Duration // Recovering: when it passed

	sample    *modelSample
	cohort    *modelCohort
	took      time.Duration // of a sampled call; 0 while it runs
	succeeded bool
}

const modelNever = time.Duration(math.MaxInt64)

func newModel(c breaker.Config) *modelBreaker {
	m := &modelBreaker{config: modelDefaults(c), evidence: new(window.Counts), usual: new(modelUsual), rollAt: modelStale}
	closed := modelStay{state: breaker.Closed, until: modelNever, reason: "initial state", cooldown: m.cooldown(0)}
	first := closed
	if state, reason := m.overrideInEffect(); state != "" {
		first.state, first.reason, m.under = state, reason, &closed
	}
	m.begin(first)
	return m
}

// bucketLength is the length of a bucket.
func (m *modelBreaker) bucketLength() time.Duration {
	n := time.Duration(m.config.Buckets)
	return (m.config.Window + n - 1) / n
}

func (m *modelBreaker) bucket(t time.Duration) int64 {
	if m.config.LastCalls > 0 {
		return 0
	}
	return int64(math.Floor(float64(t) / float64(m.bucketLength())))
}

// latest returns the time at which a result at t is recorded.
func (m *modelBreaker) latest(t time.Duration) time.Duration {
	t = max(t, m.stay.since)
	if m.config.LastCalls == 0 {
		t = max(t, time.Duration(m.newest)*m.bucketLength())
	}
	return t
}

// dueStays lists the stays that follow s by the passing of time, up to t.
func (m *modelBreaker) dueStays(s modelStay, t time.Duration) (brought []modelStay) {
	for s.until != modelNever && t >= s.until {
		s.since, s.until = s.until, modelNever
		if s.state == breaker.Open {
			s.state = breaker.HalfOpen // until HalfOpenTimeout ends, which begins with a probe
		} else {
			s.state, s.until = breaker.Open, max(modelAdd(s.since, s.cooldown), s.asked)
			s.wait = s.until - s.since
		}
		s.asked = math.MinInt64
		brought = append(brought, s)
	}
	return brought
}

// enterDue enters the stays that are due.
func (m *modelBreaker) enterDue(t time.Duration) {
	for _, s := range m.dueStays(m.stay, t) {
		m.enter(s, "clock", m.clockReason(), window.Counts{})
	}
}

// clockReason returns the reason of the transition that the clock causes.
func (m *modelBreaker) clockReason() string {
	shown, unit := m.stay.wait, time.Millisecond
	if m.stay.state == breaker.HalfOpen {
		shown = m.config.HalfOpenTimeout
	}
	if shown < time.Second {
		unit = time.Microsecond
	}
	text := "the wait of %v is over"
	switch {
	case m.stay.state == breaker.HalfOpen:
		text = "too few probes ended within the HalfOpenTimeout of %v"
	case m.stay.wait == m.stay.cooldown:
		text = "the cooldown of %v is over"
	}
	return fmt.Sprintf(text, shown.Round(unit))
}

func (m *modelBreaker) enter(s modelStay, by string, reason string, counts window.Counts) {
	m.recordChange(breaker.Change{At: t0.Add(s.since), From: m.stay.state, To: s.state, Reason: reason, Counts: counts}.WithOrigin(by))
	m.begin(s)
}

func (m *modelBreaker) recordChange(c breaker.Change) {
	c.Name = "model"
	m.changes = append(m.changes, c.WithSeq(uint64(len(m.changes))+1))
}

func (m *modelBreaker) begin(s modelStay) {
	if s.state == breaker.Closed {
		s.rounds, s.byRun, s.spare, s.spareTo = 0, false, 0, 0
	}
	m.stay = s
	m.visit++
	m.from, m.streak, m.refused = len(m.results), 0, 0
	m.stay.asked = math.MinInt64
	m.places, m.probed = make([]*modelCall, m.config.Probes), window.Counts{}
	m.shadow, m.run = nil, nil
	m.ramp = modelRamp{share: modelLeastShare, skipped: 7, passedAt: s.since, good: s.since, failed: s.since}
	m.ramp.counted = &modelBreaker{config: m.config}
	m.sample, m.earlier, m.sampledFrom = nil, nil, s.since
	if m.samples() {
		m.beginSample(s.since)
	}
	if s.state == breaker.Shadow {
		c := m.config
		c.Force = ""
		m.shadow, m.told = newModel(c), 0
		m.shadow.config, m.shadow.evidence, m.shadow.stay.since = c, m.evidence, s.since
		m.shadow.usual = m.usual
		m.shadow.beginSample(s.since)
	}
}

// reportShadow reports the openings of the shadow.
func (m *modelBreaker) reportShadow() {
	for _, c := range m.shadow.changes[m.told:] {
		if c.To == breaker.Open {
			m.shadowOpened++
			c.From, c.To, c.Reason = breaker.Shadow, breaker.Shadow, "would open: "+c.Reason
			m.recordChange(c)
		}
	}
	m.told = len(m.shadow.changes)
}

func (m *modelBreaker) cooldown(rounds int) time.Duration {
	d := float64(m.config.Cooldown)
	for range rounds {
		d *= m.config.CooldownFactor
	}
	if m.config.CooldownFactor > 1 {
		d = min(d, float64(m.config.MaxCooldown))
	}
	return time.Duration(d)
}

// open opens a closed, half-open or recovering breaker.
func (m *modelBreaker) open(t time.Duration, by string, reason string, counts window.Counts) {
	t = m.latest(t)
	s := modelStay{state: breaker.Open, since: t, reason: reason, tripped: counts, rounds: m.stay.rounds}
	s.byRun, s.refused, s.spare = m.stay.byRun, m.totals.Refused, m.stay.spare
	if s.byRun && m.stay.state != breaker.Closed {
		s.spareTo = modelAdd(t, s.spare)
	}
	if m.stay.state == breaker.HalfOpen || m.stay.state == breaker.Recovering {
		s.rounds++
	}
	s.cooldown = m.cooldown(s.rounds)
	s.until = max(modelAdd(t, s.cooldown), m.stay.asked)
	s.wait = s.until - t
	m.enter(s, by, reason, counts)
}
