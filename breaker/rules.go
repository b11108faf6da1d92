package breaker

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/weir-go/weir/internal/cusum"
	"github.com/weir-go/weir/internal/tally"
	"github.com/weir-go/weir/window"
)

// rules hold a Config with its defaults, and values computed from it. Rules never change.
type rules struct {
	config      Config
	failureRate rate
	slowRate    rate
	minCalls    int64
	run         cusum.Rule
	callNeeds
}

// callNeeds says what must be done for each call. Each regime has a copy of it, so that a call
// loads one pointer less.
type callNeeds struct {
	timed    bool // the beginning of the call is recorded
	measured bool // the duration of the call is counted
	traced   bool // the call may become an exemplar
	asked    bool // Trip or SharedCounts is called at every result
	runs     bool // runs of failures are counted
}

func newRules(c Config) *rules {
	r := &rules{
		config: c, failureRate: rateOf(c.FailureRate), slowRate: rateOf(c.SlowRate),
		minCalls: int64(c.MinCalls),
		callNeeds: callNeeds{
			measured: c.SlowCall != math.MaxInt64 || c.Latency,
			traced:   c.Trace != nil && c.Latency,
			asked:    c.Trip != nil || c.SharedCounts != nil,
			runs:     c.FailureRun != math.MaxInt,
		},
	}
	r.run = cusum.NewRule(int64(r.failureRate), int64(c.FailureRun))
	if c.LastCalls > 0 {
		r.minCalls = min(r.minCalls, int64(c.LastCalls))
	}
	return r
}

// newTally returns an empty tally for the window of the Config that begins at the given time, with
// a histogram if latency is set.
func (r *rules) newTally(latency bool, at time.Duration) *tally.Calls {
	c := &r.config
	if c.LastCalls > 0 {
		return tally.NewLast(c.LastCalls, c.SlowCall)
	}
	width := (c.Window + time.Duration(c.Buckets) - 1) / time.Duration(c.Buckets)
	t := tally.New(width, c.Buckets, c.SlowCall)
	t.BeginAt(min(at, 0))
	if latency {
		t.TrackLatency()
	}
	return t
}

// sameWindow reports whether r and old count in windows of the same shape.
func (r *rules) sameWindow(old *rules) bool {
	a, b := &r.config, &old.config
	return a.Window == b.Window && a.Buckets == b.Buckets && a.LastCalls == b.LastCalls && a.Latency == b.Latency
}

// afterProbes returns the state that follows successful probes.
func (r *rules) afterProbes() State {
	if r.config.Recovery > 0 {
		return Recovering
	}
	return Closed
}

// cooldown returns the cooldown after the given number of rounds of failed probes.
func (r *rules) cooldown(rounds int) time.Duration {
	c := &r.config
	if c.Cooldown == 0 { // 0 times an infinite power is NaN
		return 0
	}
	d := float64(c.Cooldown) * math.Pow(c.CooldownFactor, float64(rounds))
	if c.CooldownFactor > 1 {
		d = min(d, float64(c.MaxCooldown))
	}
	d -= d * max(c.CooldownJitter, 0) * rand.Float64()
	if d >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(d)
}

// evidence is what the rules judge after a result.
type evidence struct {
	calls, slow tally.Pair // of the window
	streak      int64      // consecutive failures, 0 for a success
	run         cusum.Run  // the run of failures, empty for a success
	// The calls in flight that began before one that has ended. They may be successes: a failure
	// often ends sooner.
	pending int64
	// pending is not known, because the call began before the sample
	unplaced bool
}

// limitReached returns why the calls of the phase open the breaker, or nil if they do not. It calls
// functions of the user, so no lock is held.
func (p *regime) limitReached(at time.Duration, e *evidence) *cause {
	r := p.rules
	if reason, reached := r.rateReached(e.calls, e.slow, e.pending); reached && !e.unplaced {
		return &cause{reason: reason, origin: byCalls, margin: r.rateMargin(e)}
	}
	if r.runReached(e.run, e.calls, e.pending) && !e.unplaced {
		c := cause{reason: r.runReason(e.run), origin: byCalls, margin: r.margin(e, "in this run"), byRun: true, spare: p.spareAfter(e.run, at)}
		e.calls = tally.Pair{Calls: e.run.Calls(), Failures: e.run.Failures()}
		return &c
	}
	if most := int64(r.config.ConsecutiveFailures); e.streak >= most && p.consecutive(e.streak) >= most {
		reason := fmt.Sprintf("%d failures in a row, limit %d", p.consecutive(e.streak), most)
		return &cause{reason: reason, origin: byCalls, margin: r.margin(e, "in a row")}
	}
	if r.config.Trip != nil {
		if reason, trip := r.config.Trip(p.counts(at)); trip {
			return &cause{reason: reason, origin: byCalls}
		}
	}
	if r.config.SharedCounts != nil {
		n := clampCounts(r.config.SharedCounts())
		if reason, reached := r.rateReached(tally.Pair{Calls: n.Calls(), Failures: n.Failures}, tally.Pair{Calls: n.Slow, Failures: n.SlowFailures}, 0); reached {
			return &cause{reason: reason + ", by shared counts", origin: bySharedCounts}
		}
	}
	return nil
}

// failing reports whether the results reach a limit of rates, runs or failures in a row.
func (r *rules) failing(e *evidence) bool {
	_, reached := r.rateReached(e.calls, e.slow, e.pending)
	return reached || r.runReached(e.run, e.calls, e.pending) || e.streak >= int64(r.config.ConsecutiveFailures)
}

// runReached reports whether a run of failures is long enough for a window with these calls, even
// if the pending calls succeed.
func (r *rules) runReached(run cusum.Run, calls tally.Pair, pending int64) bool {
	return run != 0 && r.run.Reached(run.MoreSuccesses(pending), (calls.Calls+pending)/busyShare)
}

// rateReached reports whether the counts reach a rate, even if the pending calls succeed, and the
// reason in words.
func (r *rules) rateReached(calls, slow tally.Pair, pending int64) (reason string, reached bool) {
	slow.Calls = min(slow.Calls, calls.Calls)
	switch {
	case calls.Calls < r.minCalls:
	case r.failureRate.reached(calls.Failures, calls.Calls+pending):
		return r.failureReason(calls.Failures, calls.Calls), true
	case r.slowRate.reached(slow.Calls, calls.Calls):
		return r.slowReason(slow.Calls, calls.Calls), true
	}
	return "", false
}

func (r *rules) failureReason(failures, calls int64) string {
	return fmt.Sprintf("failure rate %.3g%% of %d calls, limit %.3g%%",
		100*float64(failures)/float64(calls), calls, 100*r.config.FailureRate)
}

func (r *rules) slowReason(slow, calls int64) string {
	return fmt.Sprintf("slow rate %.3g%% of %d calls, limit %.3g%%",
		100*float64(slow)/float64(calls), calls, 100*r.config.SlowRate)
}

// clampCounts returns c without negative counts and without counts whose sum overflows.
func clampCounts(c window.Counts) window.Counts {
	for _, n := range []*int64{&c.Successes, &c.Failures, &c.Slow, &c.SlowFailures} {
		*n = min(max(*n, 0), math.MaxInt64/2)
	}
	return c
}

// rate is a share in parts of a billion. Comparing it with counts in whole numbers is exact: 57 of
// 100 calls reach 57 %, and 49.6 % never reaches 50 %.
type rate int64

const wholeRate rate = 1_000_000_000

// neverReached is a rate that no share reaches.
const neverReached rate = -1

// rateOf rounds down, but first adds a little, because a decimal fraction may become smaller in
// binary. So two of three calls reach 2.0/3, and 57 of 100 calls reach 0.57.
func rateOf(share float64) rate {
	if share < 0 {
		return neverReached
	}
	return max(rate(share*float64(wholeRate)+1e-6), 1)
}

// reached reports whether part is at least the rate of all. It is false if all is 0.
func (r rate) reached(part, all int64) bool {
	if r < 0 || all <= 0 {
		return false
	}
	partHigh, partLow := bits.Mul64(uint64(part), uint64(wholeRate))
	allHigh, allLow := bits.Mul64(uint64(all), uint64(r))
	return partHigh > allHigh || partHigh == allHigh && partLow >= allLow
}

const (
	// A run must be longer by one failure for every busyShare calls in the window. So failures that
	// come all together do not open a breaker if they are a smaller share of the calls in the
	// window.
	busyShare = 6
	// chanceShare is the share of FailureRate up to which failures count as chance.
	chanceShare = 0.4
	// minCallsBetweenRuns is a lower bound of the mean number of calls between two runs of the
	// default length that happen by chance.
	minCallsBetweenRuns = 1_000_000
	// sparedCalls is the number of calls that are refused before each probe while the service is
	// very likely still down. If it takes longer than longestSpare, the probe is made earlier.
	sparedCalls  = 7
	longestSpare = 10 * time.Minute
)

// defaultRun returns the default of FailureRun for a Config whose other fields have their defaults.
func (c *Config) defaultRun() int {
	if c.LastCalls > 0 || c.FailureRate < 0 {
		return math.MaxInt
	}
	byChance := cusum.Least(minCallsBetweenRuns, chanceShare*c.FailureRate, c.FailureRate)
	byRate := math.Ceil(c.FailureRate*float64(c.MinCalls) - 1e-6)
	return max(int(byChance), int(byRate))
}

// countFailure adds a failure to the run. It must be called before the tally counts the call: see
// RatesAndMarkClean.
func (p *regime) countFailure(at time.Duration) (run cusum.Run) {
	if run = p.addToRun(true); run.Calls() == 1 {
		p.runBegan.Store(int64(at))
	}
	return run
}

// addToRun counts a call for the run. It writes nothing for a success while the run is empty.
func (p *regime) addToRun(failed bool) (run cusum.Run) {
	if p.runs {
		run = p.run.Add(p.rules.run, failed)
	}
	return run
}

// runReason says how unlikely a run is by chance, as a power of ten: see package cusum.
func (r *rules) runReason(run cusum.Run) string {
	rate := r.config.FailureRate
	odds := cusum.Score(run, rate) * cusum.Exponent(chanceShare*rate, rate) / math.Ln10
	return fmt.Sprintf("%d of the last %d calls failed, by chance less than once in 10^%.0f calls if %.3g%% fail",
		run.Failures(), run.Calls(), math.Floor(odds), 100*chanceShare*rate)
}

// spareAfter returns for how long calls may be refused after a failed probe: the time in which
// sparedCalls calls and the probe came during the run.
func (p *regime) spareAfter(run cusum.Run, at time.Duration) time.Duration {
	calls := run.Calls() - 1
	if calls < 1 {
		return 0
	}
	gap := max(at-time.Duration(p.runBegan.Load()), 0) / time.Duration(calls)
	return min(gap, longestSpare/(sparedCalls+1)) * (sparedCalls + 1)
}

// spares reports whether calls may be refused until spareUntil.
func (p *regime) spares() bool { return p.byRun && p.rounds > 0 }

// tooEarlyToProbe reports whether more calls must be refused before the first probe, because the
// service is very likely still down.
func (b *Breaker) tooEarlyToProbe(p *regime, at time.Duration) bool {
	return p.spares() && at < p.spareUntil && int64(b.refused.Load())-p.recovery.refused < sparedCalls
}

// isUninformative reports whether a failed call says nothing about the service, because its
// deadline d has passed. The deadline must have been too short, or have passed while the process
// was suspended.
func (m *Permit) isUninformative(d time.Time) bool {
	b := m.breaker
	p := b.regime.Load()
	sampler := b
	if p.shadow != nil {
		sampler = p.shadow
	}
	at, deadline := b.now(), b.clock.Peek(d)
	if at < deadline {
		return false
	}
	b.usual.needed.Store(int64(addClamped(at, usualEvery)))
	sampler.setSampling(true, at)
	short := b.usual.mayBeShort(m.startedBy(p, at), deadline, sampler.regime.Load().sample, at)
	if !short && !p.suspendedAt(deadline, at) || b.rareParts().unanswered.addAndCheck(p, at, time.Duration(b.usual.known.Load())) {
		b.usual.counted.Store(int64(at))
		return false
	}
	return true
}

// If a result comes this long after the deadline of its call, the process was suspended.
const lateAfter = time.Second

// suspendedAt reports whether the process seems to have been suspended at the deadline of a call
// that ended at the given time: the call ended more than a second after the deadline, and no call
// ended in between.
func (p *regime) suspendedAt(deadline, at time.Duration) bool {
	if at-deadline <= lateAfter {
		return false
	}
	from, to := p.tally.Pause(at)
	return deadline+time.Second >= from && deadline <= to
}

// uninformativeCalls counts the calls that say nothing about the service. A success of the breaker
// restarts the count. The zero value is empty.
type uninformativeCalls struct {
	mu        sync.Mutex
	since     time.Duration
	calls     int64
	successes int64 // of the breaker before the first of these calls
}

// addAndCheck counts the call, and reports whether the call is evidence nevertheless. It is
// evidence if MinCalls such calls came before it without a success in between, and there was no
// success for the length of the window and twice the usual duration. A probe is never evidence
// nevertheless: if only callers with short deadlines make the probes, others may still be answered.
func (u *uninformativeCalls) addAndCheck(p *regime, at, usual time.Duration) bool {
	long := p.rules.config.Window
	if long == 0 { // LastCalls
		long = usualEvery
	}
	long = addClamped(long, 2*max(usual, 0))
	t := p.totals()
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.calls == 0 || u.successes != t.Successes || u.since < p.since {
		u.since, u.calls, u.successes = at, 0, t.Successes
	}
	u.calls++
	return u.calls > p.rules.minCalls && p.results != probeResults && at-u.since >= long
}

func (u *uninformativeCalls) restart() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.calls = 0
}
