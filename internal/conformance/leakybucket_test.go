package conformance_test

import (
	"math"
	"time"

	"github.com/weir-go/weir/limiter"
)

type leakyConfig struct {
	Name  string   `json:"name"`
	Grid  timeGrid `json:"grid"`
	Rate  number   `json:"rate"` // a second
	Burst number   `json:"burst"`
	Long  bool     `json:"long_clock"` // the clock has whole seconds
	T0    int64    `json:"t0_ns"`
}

type leakyStep struct {
	At int64 `json:"t_ns"`

	OK    *bool   `json:"ok"`
	Water *number `json:"water"`
}

// leakyBucketReplayer replays the leaky bucket of document 001, which is a meter. All its answers
// are compared with its code. The correct answers are also compared with a TokenBucket.
var leakyBucketReplayer = replaying("t_ns", func(r *run, c leakyConfig) func(leakyStep) {
	rate, burst := float64(c.Rate), float64(c.Burst)
	config := limiter.TokenBucketConfig{Rate: perSecond(rate), Burst: positiveInt(c.Burst)}
	slack := c.Grid.slack(rate)
	var water float64
	var weir *limiter.TokenBucket
	var refreshed, latest int64
	refreshed = c.clock(c.T0)
	return func(s leakyStep) {
		now := c.clock(s.At)
		if config.Burst == 0 || config.Validate() != nil {
			r.skipStep(refusedRate)
		} else if now < latest {
			r.skipStep(clockBack)
			weir = nil
		} else if weir == nil {
			weir = bucket(config, rate, refreshed, water)
		}
		latest = max(latest, now)

		water = math.Max(0, water-float64(now-refreshed)*rate/1e9)
		refreshed = now
		before := water
		ok := water < burst
		if s.OK != nil && *s.OK != ok && slack > 0 && math.Abs(water-burst) <= slack {
			r.noteDivergence(floatEdge)
			ok = *s.OK
		}
		if ok {
			water++
		}
		checkSame(r, "ok", s.OK, ok)
		checkClose(r, "water", s.Water, water, slack)
		if weir == nil || r.stopped {
			return
		}
		water = float64(*s.Water)
		granted := weir.TakeAt(nanoTime(now), 1).OK
		switch level := limiters.TokensAt(weir, nanoTime(now)); {
		case granted == ok && math.Abs(level-(burst-water)) <= slack+1e-6:
			return
		case !granted && ok && before > burst-1-slack:
			r.noteDivergence(partialRoom)
		case granted && !ok && before > burst-1-slack:
			r.noteDivergence(floatEdge)
		default:
			r.mismatch("weir has ok %t and then %v tokens, want %v: %s", granted, level, burst-water, r.seq.Steps[r.at])
		}
		weir = nil
	}
})

// clock returns the time as the code reads it.
func (c leakyConfig) clock(t int64) int64 {
	if c.Long {
		return t / int64(time.Second) * int64(time.Second)
	}
	return t
}
