package breaker

import (
	"fmt"
	"math"
	"math/rand/v2"
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
	consecutive int64
	run         cusum.Rule
	callNeeds
}

// callNeeds says what must be done for each call. Each phase has a copy of it, so that a call loads
// one pointer less.
type callNeeds struct {
	timed    bool // the beginning of the call is recorded
	measured bool // the duration of the call is counted
	traced   bool // the call may become an exemplar
	watched  bool // the call is counted while in flight
	asked    bool // Trip or SharedCounts is called at every result
	runs     bool // runs of failures are counted
}

func newRules(c Config) *rules {
	r := &rules{
		config: c, failureRate: rateOf(c.FailureRate), slowRate: rateOf(c.SlowRate),
		minCalls: int64(c.MinCalls), consecutive: int64(c.ConsecutiveFailures),
		callNeeds: callNeeds{
			measured: c.SlowCall != math.MaxInt64 || c.Latency,
			traced:   c.Trace != nil && c.Latency,
			watched:  c.HungCalls || c.Active,
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
func (p *phase) limitReached(at time.Duration, e *evidence) *cause {
	r := p.rules
	if reason, reached := r.rateReached(e.calls, e.slow, e.pending); reached && !e.unplaced {
		return &cause{reason: reason, origin: byCalls, margin: r.rateMargin(e)}
	}
	if r.runReached(e.run, e.calls, e.pending) && !e.unplaced {
		c := cause{reason: r.runReason(e.run), origin: byCalls, margin: r.margin(e, "in this run"), byRun: true, spare: p.spareAfter(e.run, at)}
		e.calls = tally.Pair{Calls: e.run.Calls(), Failures: e.run.Failures()}
		return &c
	}
	if e.streak >= r.consecutive && p.consecutive(e.streak) >= r.consecutive {
		reason := fmt.Sprintf("%d failures in a row, limit %d", p.consecutive(e.streak), r.consecutive)
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
	return reached || r.runReached(e.run, e.calls, e.pending) || e.streak >= r.consecutive
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
