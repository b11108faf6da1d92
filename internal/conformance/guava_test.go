package conformance_test

import (
	"fmt"
	"math"
	"time"

	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/limiter/guava"
)

type guavaConfig struct {
	Name     string      `json:"name"`
	Kind     string      `json:"kind"` // "bursty" or "warmup"
	Rate     number      `json:"rate"` // a second
	WarmUp   int64       `json:"warmup_us"`
	Cold     number      `json:"cold_factor"`
	Start    int64       `json:"start_us"`
	Sleeping bool        `json:"sleep_advances"` // one thread that sleeps: the clock moves by what is waited
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

// guavaRuns replays Guava's RateLimiter. All that it answers is compared with its arithmetic, and what it grants and what is
// waited with SmoothBursty and SmoothWarmingUp, to the microsecond.
var guavaRuns = replaying("now_us op n timeout_us rate us", func(r *run, c guavaConfig) func(guavaStep) {
	g := &guavaReplay{run: r, sleeping: c.Sleeping, theirs: guavaLimiter{bursty: c.Kind == "bursty", warmup: float64(c.WarmUp), cold: float64(c.Cold)}}
	failed := g.theirs.setRate(c.Start, float64(c.Rate))
	sameOrNull(r, "create_error", c.Error, failed)
	if failed != nil || r.stopped {
		r.left = noPace
		return func(guavaStep) { r.fault("steps of a limiter that could not be made") }
	}
	g.state(*c.Init)
	if g.ours = ourPacer(c); g.ours == nil {
		r.without(noPace)
	}
	return g.step
})

// pacer is what SmoothBursty and SmoothWarmingUp have in common.
type pacer interface {
	ReserveAt(t time.Time, n int, limit time.Duration) (wait time.Duration, ok bool)
	SetRateAt(t time.Time, r limiter.Rate) error
}

// ourPacer is nil where ours refuses the config.
func ourPacer(c guavaConfig) pacer {
	t0, rate := micro(c.Start), limiter.PerSecond(float64(c.Rate))
	if c.Kind == "bursty" {
		smooth := guava.SmoothBurstyConfig{Rate: rate}
		if smooth.Validate() != nil {
			return nil
		}
		return guava.NewSmoothBurstyAt(smooth, t0)
	}
	warmup := guava.SmoothWarmingUpConfig{Rate: rate, WarmUp: time.Duration(c.WarmUp) * time.Microsecond, ColdFactor: float64(c.Cold)}
	if c.Cold == 0 || warmup.Validate() != nil {
		return nil
	}
	return guava.NewSmoothWarmingUpAt(warmup, t0)
}

type guavaReplay struct {
	*run
	sleeping bool
	theirs   guavaLimiter
	ours     pacer
}

func (g *guavaReplay) step(s guavaStep) {
	if g.ours == nil {
		g.without(noPace)
	}
	after := s.Now
	switch s.Op {
	case "acquire":
		after += g.acquire(s)
	case "tryAcquire":
		after += g.tryAcquire(s)
	case "setRate":
		g.setRate(s)
	case "getRate":
		same(g.run, "rate_out", s.RateOut, number(1e6/g.theirs.stable))
	case "advance":
		after += s.Advance
	default:
		g.fault("op is %q", s.Op)
	}
	same(g.run, "after_us", s.After, after)
	g.state(s.guavaState)
}

func (g *guavaReplay) state(s guavaState) {
	same(g.run, "stored", s.Stored, number(g.theirs.stored))
	same(g.run, "max", s.Max, number(g.theirs.max))
	same(g.run, "stable_us", s.Stable, number(g.theirs.stable))
	same(g.run, "next_free_us", s.Next, g.theirs.next)
}

// refused compares a request for nothing, which is an error.
func (g *guavaReplay) refused(s guavaStep) bool {
	if s.N > 0 {
		none(g.run, "error", s.Error)
		return false
	}
	same(g.run, "error", s.Error, fmt.Sprintf("IllegalArgumentException: Requested permits (%d) must be positive", s.N))
	if g.ours == nil {
		return true
	}
	if _, ok := g.ours.ReserveAt(micro(s.Now), s.N, limiter.Never); ok {
		g.fault("ours grants %d permits", s.N)
	}
	return true
}

func (g *guavaReplay) acquire(s guavaStep) (slept int64) {
	if g.refused(s) {
		return 0
	}
	wait := g.theirs.reserve(s.Now, s.N)
	same(g.run, "wait_us", s.Wait, wait)
	same(g.run, "ret_s", s.Seconds, number(float64(wait)/1e6))
	g.compare(s, math.MaxInt64, true, wait)
	return g.sleep(wait)
}

func (g *guavaReplay) tryAcquire(s guavaStep) (slept int64) {
	if g.refused(s) {
		return 0
	}
	ok, wait := g.theirs.next-max(s.Timeout, 0) <= s.Now, int64(0)
	if ok {
		wait = g.theirs.reserve(s.Now, s.N)
	}
	same(g.run, "ok", s.OK, ok)
	same(g.run, "slept", s.Slept, ok)
	same(g.run, "wait_us", s.Wait, wait)
	g.compare(s, s.Timeout, ok, wait)
	return g.sleep(wait)
}

func (g *guavaReplay) sleep(wait int64) int64 {
	if g.sleeping {
		return wait
	}
	return 0
}

// compare compares ours with what has been found to be what theirs answered.
func (g *guavaReplay) compare(s guavaStep, timeout int64, ok bool, wait int64) {
	if g.ours == nil || g.stopped {
		return
	}
	ourWait, ourOK := g.ours.ReserveAt(micro(s.Now), s.N, micros(timeout))
	if ourOK != ok || ourWait != micros(wait) {
		g.fault("ours has ok %t, wait %s: %s", ourOK, ourWait, g.seq.Steps[g.at])
	}
}

func (g *guavaReplay) setRate(s guavaStep) {
	failed := g.theirs.setRate(s.Now, float64(s.Rate))
	sameOrNull(g.run, "error", s.Error, failed)
	if g.ours == nil {
		return
	}
	err := g.ours.SetRateAt(micro(s.Now), limiter.PerSecond(float64(s.Rate)))
	switch {
	case math.IsInf(float64(s.Rate), 1):
		g.without(noPace)
		g.ours = nil
	case (err != nil) != (failed != nil):
		g.fault("ours has error %v: %s", err, g.seq.Steps[g.at])
	}
}

func micro(us int64) time.Time { return time.UnixMicro(us) }

// micros is a span of microseconds, or what ours says where it is too long for it.
func micros(us int64) time.Duration {
	if us > math.MaxInt64/1000/2 {
		return limiter.Never
	}
	return time.Duration(us) * time.Microsecond
}
