package conformance_test

import (
	"math"

	"github.com/weir-go/weir/limiter"
)

type funnelConfig struct {
	Name     string   `json:"name"`
	Grid     timeGrid `json:"grid"`
	Capacity number   `json:"capacity"`
	Rate     number   `json:"leaking_rate"` // quota a second
	T0       int64    `json:"t0_ns"`
}

type funnelStep struct {
	At    int64  `json:"t_ns"`
	Quota number `json:"quota"`

	OK   *bool   `json:"ok"`
	Left *number `json:"left"`
	Time *int64  `json:"leaking_ts_ns"`
}

// funnelReplayer replays the Funnel of document 000, in Python. All its answers are compared with
// its code. The correct answers are also compared with a TokenBucket.
var funnelReplayer = replaying("t_ns quota", func(r *run, c funnelConfig) func(funnelStep) {
	f := &funnelReplay{
		run: r, rate: float64(c.Rate), capacity: float64(c.Capacity), left: float64(c.Capacity), time: c.T0, latest: c.T0,
		slack: c.Grid.slack(float64(c.Rate)), config: limiter.TokenBucketConfig{Rate: perSecond(float64(c.Rate)), Burst: positiveInt(c.Capacity)},
	}
	return f.step
})

type funnelReplay struct {
	*run
	capacity, rate float64
	left           float64 // room, as of time
	time           int64   // the last credit
	latest         int64
	slack          float64

	config limiter.TokenBucketConfig
	weir   *limiter.TokenBucket // nil where only the reference is replayed
}

// pending returns the room that has come since the last credit.
func (f *funnelReplay) pending(t int64) float64 { return float64(t-f.time) * f.rate / 1e9 }

func (f *funnelReplay) step(s funnelStep) {
	f.seed(s)
	room := math.Min(f.left+f.pending(s.At), f.capacity) // as it should be
	if p := f.pending(s.At); p >= 1-f.slack {
		f.addFreedRoom(s, p)
	}
	ok := f.left >= float64(s.Quota)
	if math.Abs(f.left-float64(s.Quota)) <= f.slack && f.slack > 0 && s.OK != nil && *s.OK != ok {
		f.noteDivergence(floatEdge)
		ok = *s.OK
	}
	if ok {
		f.left -= float64(s.Quota)
	}
	checkSame(f.run, "ok", s.OK, ok)
	checkClose(f.run, "left", s.Left, f.left, f.slack)
	if f.slack == 0 {
		checkSame(f.run, "leaking_ts_ns", s.Time, f.time)
	} else {
		checkWithin(f.run, "leaking_ts_ns", s.Time, f.time, 1000) // it went through a float64
	}
	if f.stopped {
		return
	}
	f.left = float64(*s.Left)
	f.latest = max(f.latest, s.At)
	if f.weir != nil {
		f.compare(s, room, ok)
	}
}

// addFreedRoom adds the room that has been freed since the last request. If rounding decides
// whether there is a credit, it follows the reference.
func (f *funnelReplay) addFreedRoom(s funnelStep, pending float64) {
	if pending < 1+f.slack && f.slack > 0 && s.Time != nil && *s.Time < s.At-1000 {
		f.noteDivergence(floatEdge)
		return
	}
	f.left, f.time = math.Min(f.left+pending, f.capacity), s.At
}

// seed makes a TokenBucket with the level of the reference, if there is none.
func (f *funnelReplay) seed(s funnelStep) {
	switch {
	case s.At < f.latest:
		f.skipStep(clockBack)
	case s.Quota < 0 || s.Quota != number(math.Trunc(float64(s.Quota))) || f.config.Burst == 0 || f.config.Validate() != nil:
		f.skipStep(refusedRate)
	case f.weir == nil:
		f.weir = bucket(f.config, f.rate, f.time, f.capacity-f.left)
		return
	default:
		return
	}
	f.weir = nil
}

// compare compares a step, given how much room there was and what the reference answered.
func (f *funnelReplay) compare(s funnelStep, room float64, ok bool) {
	weir := f.weir.TakeAt(nanoTime(s.At), int(s.Quota)).OK
	quota := float64(s.Quota)
	should := f.left + f.pending(s.At) // the room that there is now
	switch level := limiters.TokensAt(f.weir, nanoTime(s.At)); {
	case weir == ok && math.Abs(level-math.Min(should, f.capacity)) <= f.slack+1e-6:
		return
	case weir == ok && should > level && should-level < 1+f.slack && ok && quota > 0:
		f.noteDivergence(excessCredit)
	case weir && !ok && quota <= room+f.slack:
		f.noteDivergence(wholeQuotas)
	case math.Abs(room-quota) <= f.slack+1e-6:
		f.noteDivergence(floatEdge)
	default:
		f.mismatch("weir has ok %t and then %v tokens, want %v: %s", weir, level, should, f.seq.Steps[f.at])
	}
	f.weir = nil
}
