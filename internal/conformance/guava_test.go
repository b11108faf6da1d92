package conformance_test

import (
	"fmt"
	"math"
	"time"

	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/limiter/guava"
)

type guavaConfig struct {
	Name   string `json:"name"`
	Kind   string `json:"kind"` // "bursty" or "warmup"
	Rate   number `json:"rate"` // a second
	WarmUp int64  `json:"warmup_us"`
	Cold   number `json:"cold_factor"`
	Start  int64  `json:"start_us"`
	// one thread that sleeps: the clock moves by each wait
	Sleeping bool        `json:"sleep_advances"`
	Error    *string     `json:"create_error"`
	Init     *guavaState `json:"init"`
}

type guavaState struct {
	Stored *number `json:"stored"`
	Max    *number `json:"max"`
	Stable *number `json:"stable_us"`
	Next   *int64  `json:"next_free_us"`
}

type guavaStep struct {
	Now     int64  `json:"now_us"`
	Op      string `json:"op"`
	N       int    `json:"n"`
	Timeout int64  `json:"timeout_us"`
	Rate    number `json:"rate"`
	Advance int64  `json:"us"`

	OK      *bool   `json:"ok"`
	Slept   *bool   `json:"slept"`
	Wait    *int64  `json:"wait_us"`
	Seconds *number `json:"ret_s"`
	RateOut *number `json:"rate_out"`
	Error   *string `json:"error"`
	After   *int64  `json:"after_us"`
	guavaState
}

// guavaReplayer replays Guava's RateLimiter. All its answers are compared with its arithmetic, and
// its grants and waits with those of package guava, to the microsecond.
var guavaReplayer = inBubble(replaying("now_us op n timeout_us rate us", func(r *run, c guavaConfig) func(guavaStep) {
	g := &guavaReplay{run: r, now: c.Start, sleeping: c.Sleeping, reference: guavaLimiter{bursty: c.Kind == "bursty", warmup: float64(c.WarmUp), cold: float64(c.Cold)}}
	failed := g.reference.setRate(c.Start, float64(c.Rate))
	checkSameOrNull(r, "create_error", c.Error, failed)
	if failed != nil || r.stopped {
		r.left = refusedPace
		return func(guavaStep) { r.mismatch("steps of a limiter that could not be created") }
	}
	g.state(*c.Init)
	if g.weir = newPacer(c); g.weir == nil {
		r.skipStep(refusedPace)
	}
	return g.step
}))

// newPacer returns nil if weir refuses the config.
func newPacer(c guavaConfig) *guava.RateLimiter {
	rate := limiter.PerSecond(float64(c.Rate))
	if c.Kind == "bursty" {
		smooth := guava.SmoothBurstyConfig{Rate: rate}
		if smooth.Validate() != nil {
			return nil
		}
		return guava.NewSmoothBursty(smooth)
	}
	warmup := guava.SmoothWarmingUpConfig{Rate: rate, WarmUp: time.Duration(c.WarmUp) * time.Microsecond, ColdFactor: float64(c.Cold)}
	if c.Cold == 0 || warmup.Validate() != nil {
		return nil
	}
	return guava.NewSmoothWarmingUp(warmup)
}

type guavaReplay struct {
	*run
	now       int64 // the time of the clock, in microseconds
	sleeping  bool
	reference guavaLimiter
	weir      *guava.RateLimiter
}

func (g *guavaReplay) step(s guavaStep) {
	if g.weir == nil {
		g.skipStep(refusedPace)
	}
	advanceBubble(microDuration(s.Now - g.now))
	g.now = s.Now
	after := s.Now
	switch s.Op {
	case "acquire":
		after += g.acquire(s)
	case "tryAcquire":
		after += g.tryAcquire(s)
	case "setRate":
		g.setRate(s)
	case "getRate":
		checkSame(g.run, "rate_out", s.RateOut, number(1e6/g.reference.stable))
	case "advance":
		after += s.Advance
	default:
		g.mismatch("op is %q", s.Op)
	}
	checkSame(g.run, "after_us", s.After, after)
	g.state(s.guavaState)
}

func (g *guavaReplay) state(s guavaState) {
	checkSame(g.run, "stored", s.Stored, number(g.reference.stored))
	checkSame(g.run, "max", s.Max, number(g.reference.max))
	checkSame(g.run, "stable_us", s.Stable, number(g.reference.stable))
	checkSame(g.run, "next_free_us", s.Next, g.reference.next)
}

// checkInvalid reports whether a step requests 0 or fewer permits. If so, weir and the reference
// must both refuse the step as invalid.
func (g *guavaReplay) checkInvalid(s guavaStep) bool {
	if s.N > 0 {
		checkAbsent(g.run, "error", s.Error)
		return false
	}
	checkSame(g.run, "error", s.Error, fmt.Sprintf("IllegalArgumentException: Requested permits (%d) must be positive", s.N))
	if g.weir == nil {
		return true
	}
	if _, ok := g.weir.Reserve(s.N, limiter.Never); ok {
		g.mismatch("weir grants %d permits", s.N)
	}
	return true
}

func (g *guavaReplay) acquire(s guavaStep) (slept int64) {
	if g.checkInvalid(s) {
		return 0
	}
	wait := g.reference.reserve(s.Now, s.N)
	checkSame(g.run, "wait_us", s.Wait, wait)
	checkSame(g.run, "ret_s", s.Seconds, number(float64(wait)/1e6))
	g.compare(s, math.MaxInt64, true, wait)
	return g.sleep(wait)
}

func (g *guavaReplay) tryAcquire(s guavaStep) (slept int64) {
	if g.checkInvalid(s) {
		return 0
	}
	ok, wait := g.reference.next-max(s.Timeout, 0) <= s.Now, int64(0)
	if ok {
		wait = g.reference.reserve(s.Now, s.N)
	}
	checkSame(g.run, "ok", s.OK, ok)
	checkSame(g.run, "slept", s.Slept, ok)
	checkSame(g.run, "wait_us", s.Wait, wait)
	g.compare(s, s.Timeout, ok, wait)
	return g.sleep(wait)
}

func (g *guavaReplay) sleep(wait int64) int64 {
	if g.sleeping {
		return wait
	}
	return 0
}

// compare compares weir with the answer of the reference.
func (g *guavaReplay) compare(s guavaStep, timeout int64, ok bool, wait int64) {
	if g.weir == nil || g.stopped {
		return
	}
	weirWait, weirOK := g.weir.Reserve(s.N, microDuration(timeout))
	if weirOK != ok || weirWait != microDuration(wait) {
		g.mismatch("weir has ok %t, wait %s: %s", weirOK, weirWait, g.seq.Steps[g.at])
	}
}

func (g *guavaReplay) setRate(s guavaStep) {
	failed := g.reference.setRate(s.Now, float64(s.Rate))
	checkSameOrNull(g.run, "error", s.Error, failed)
	if g.weir == nil {
		return
	}
	err := g.weir.SetRate(limiter.PerSecond(float64(s.Rate)))
	switch {
	case math.IsInf(float64(s.Rate), 1):
		g.skipStep(refusedPace)
		g.weir = nil
	case (err != nil) != (failed != nil):
		g.mismatch("weir has error %v: %s", err, g.seq.Steps[g.at])
	}
}

// microDuration returns a duration in microseconds, or limiter.Never if it is too long for one.
func microDuration(us int64) time.Duration {
	if us > math.MaxInt64/1000/2 {
		return limiter.Never
	}
	return time.Duration(us) * time.Microsecond
}
