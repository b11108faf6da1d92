package breaker

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/weir-go/weir/internal/tally"
	"github.com/weir-go/weir/window"
)

// rules are a config made ready: what a phase judges by. They never change.
type rules struct {
	config      Config // with its defaults
	failureRate rate
	slowRate    rate
	minCalls    int64
	consecutive int64
	needs
}

// needs say what a call has to do by the rules. Each phase has a copy, which is one step less
// on the way of every call.
type needs struct {
	timed      bool // the time that it takes matters
	watched    bool // it is counted while in flight
	classified bool // Classify says what it came to
	asked      bool // somebody is asked at its result, whatever that is
}

func newRules(c Config) *rules {
	r := &rules{
		config: c, failureRate: rateOf(c.FailureRate), slowRate: rateOf(c.SlowRate),
		minCalls: int64(c.MinCalls), consecutive: int64(c.ConsecutiveFailures),
		needs: needs{
			timed: c.SlowCall != math.MaxInt64 || c.Latency, watched: c.HungCalls || c.Active,
			classified: c.Classify != nil, asked: c.Trip != nil || c.SharedCounts != nil,
		},
	}
	if c.LastCalls > 0 {
		r.minCalls = min(r.minCalls, int64(c.LastCalls))
	}
	return r
}

// newTally returns a tally of the config's shape.
func (r *rules) newTally() *tally.Calls {
	c := &r.config
	if c.LastCalls > 0 {
		return tally.NewLast(c.LastCalls, c.SlowCall)
	}
	width := (c.Window + time.Duration(c.Buckets) - 1) / time.Duration(c.Buckets)
	t := tally.New(width, c.Buckets, c.SlowCall)
	if c.Latency {
		t.TrackLatency()
	}
	return t
}

// sameWindow reports whether two configs judge the same window.
func (r *rules) sameWindow(old *rules) bool {
	a, b := &r.config, &old.config
	return a.Window == b.Window && a.Buckets == b.Buckets && a.LastCalls == b.LastCalls && a.Latency == b.Latency
}

// cause is why a breaker changes its state.
type cause struct {
	reason string
	origin string
}

// rates says whether the rates of a window are reached, and by which words.
func (r *rules) rates(calls, slow tally.Pair) (reason string, reached bool) {
	slow.Calls = min(slow.Calls, calls.Calls)
	switch {
	case calls.Calls < r.minCalls:
	case r.failureRate.reached(calls.Failures, calls.Calls):
		return r.failed(calls.Failures, calls.Calls), true
	case r.slowRate.reached(slow.Calls, calls.Calls):
		return r.slowed(slow.Calls, calls.Calls), true
	}
	return "", false
}

func (r *rules) failed(failures, calls int64) string {
	return fmt.Sprintf("failure rate %.3g%% of %d calls, limit %.3g%%",
		100*float64(failures)/float64(calls), calls, 100*r.config.FailureRate)
}

func (r *rules) slowed(slow, calls int64) string {
	return fmt.Sprintf("slow rate %.3g%% of %d calls, limit %.3g%%",
		100*float64(slow)/float64(calls), calls, 100*r.config.SlowRate)
}

// cooldown draws the cooldown that follows so many rounds of failed probes.
func (r *rules) cooldown(rounds int) time.Duration {
	c := &r.config
	if c.Cooldown == 0 { // of which no power is more
		return 0
	}
	d := float64(c.Cooldown) * math.Pow(c.CooldownFactor, float64(rounds))
	if c.CooldownFactor > 1 {
		d = min(d, float64(c.MaxCooldown))
	}
	d -= d * c.CooldownJitter * rand.Float64()
	if d >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(d)
}

// judge opens the breaker if the calls of a closed phase, or of a shadow, call for
// it. Every call is judged, a success too: it may be the one that reaches MinCalls. The
// failures in a row are those that the call itself has made it: the tally's may have been
// ended since by a success at the same time, which does not undo what has been reached.
func (b *Breaker) judge(p *phase, at time.Duration, streak int64) {
	calls, slow := p.tally.RatesAndMarkClean(at, &p.floor)
	if why, reached := p.cause(at, calls, slow, streak); reached {
		b.trip(p, at, why, calls)
	}
}

// cause says why the phase ends, if it does. It calls the user's functions: no
// lock is held.
func (p *phase) cause(at time.Duration, calls, slow tally.Pair, streak int64) (c cause, reached bool) {
	r := p.rules
	if reason, reached := r.rates(calls, slow); reached {
		return cause{reason, byCalls}, true
	}
	if streak >= r.consecutive && p.failures(streak) >= r.consecutive {
		return cause{fmt.Sprintf("%d failures in a row, limit %d", p.failures(streak), r.consecutive), byCalls}, true
	}
	if !r.asked {
		return c, false
	}
	if r.config.Trip != nil {
		if reason, trip := r.config.Trip(p.counts(at)); trip {
			return cause{reason, byCalls}, true
		}
	}
	if r.config.SharedCounts != nil {
		e := sound(r.config.SharedCounts())
		reason, reached := r.rates(tally.Pair{Calls: e.Calls(), Failures: e.Failures}, tally.Pair{Calls: e.Slow, Failures: e.SlowFailures})
		return cause{reason + ", by shared counts", bySharedCounts}, reached
	}
	return c, false
}

// sound returns the counts as far as there can be such: none is negative, and no sum of two
// overflows.
func sound(c window.Counts) window.Counts {
	for _, n := range []*int64{&c.Successes, &c.Failures, &c.Slow, &c.SlowFailures} {
		*n = min(max(*n, 0), math.MaxInt64/2)
	}
	return c
}

// failures returns how many of the failures in a row are of this phase.
func (p *phase) failures(streak int64) int64 {
	return min(streak, p.totals().Failures-p.began.Failures)
}
