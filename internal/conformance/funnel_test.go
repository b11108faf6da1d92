package conformance_test

import (
	"math"

	"github.com/weir-go/weir/internal/bridge"
	"github.com/weir-go/weir/limiter"
)

type funnelConfig struct {
	Name     string `json:"name"`
	Grid     grid   `json:"grid"`
	Capacity number `json:"capacity"`
	Rate     number `json:"leaking_rate"` // quota a second
	T0       int64  `json:"t0_ns"`
}

type funnelStep struct {
	At    int64  `json:"t_ns"`
	Quota number `json:"quota"`

	OK   *bool   `json:"ok"`
	Left *number `json:"left"`
	Time *int64  `json:"leaking_ts_ns"`
}

// funnel replays the Funnel that document 000 prints, in Python. All that it answers is compared with its code, and with a
// TokenBucket where that is right.
var funnel = replaying("t_ns quota", func(r *run, c funnelConfig) func(funnelStep) {
	f := &funnelReplay{
		run: r, rate: float64(c.Rate), capacity: float64(c.Capacity), left: float64(c.Capacity), time: c.T0, latest: c.T0,
		slack: c.Grid.slack(float64(c.Rate)), config: limiter.TokenBucketConfig{Rate: perSecond(float64(c.Rate)), Burst: whole(c.Capacity)},
	}
	return f.step
})

type funnelReplay struct {
	*run
	capacity, rate float64
	left           float64 // room, as of
	time           int64   // the last credit
	latest         int64
	slack          float64

	config limiter.TokenBucketConfig
	ours   *limiter.TokenBucket // nil while ours cannot take part
}

// pending is the room that has come since the last credit.
func (f *funnelReplay) pending(t int64) float64 { return float64(t-f.time) * f.rate / 1e9 }

func (f *funnelReplay) step(s funnelStep) {
	f.seed(s)
	room := math.Min(f.left+f.pending(s.At), f.capacity) // as it should be
	if p := f.pending(s.At); p >= 1-f.slack {
		f.credit(s, p)
	}
	ok := f.left >= float64(s.Quota)
	if math.Abs(f.left-float64(s.Quota)) <= f.slack && f.slack > 0 && s.OK != nil && *s.OK != ok {
		f.part(floatEdge)
		ok = *s.OK
	}
	if ok {
		f.left -= float64(s.Quota)
	}
	same(f.run, "ok", s.OK, ok)
	near(f.run, "left", s.Left, f.left, f.slack)
	if f.slack == 0 {
		same(f.run, "leaking_ts_ns", s.Time, f.time)
	} else {
		within(f.run, "leaking_ts_ns", s.Time, f.time, 1000) // it went through a float64
	}
	if f.stopped {
		return
	}
	f.left = float64(*s.Left)
	f.latest = max(f.latest, s.At)
	if f.ours != nil {
		f.compare(s, room, ok)
	}
}

// credit makes room; where floats alone decide whether to, it does as theirs did.
func (f *funnelReplay) credit(s funnelStep, pending float64) {
	if pending < 1+f.slack && f.slack > 0 && s.Time != nil && *s.Time < s.At-1000 {
		f.part(floatEdge)
		return
	}
	f.left, f.time = math.Min(f.left+pending, f.capacity), s.At
}

// seed makes a bucket of ours that stands as theirs does, if need be.
func (f *funnelReplay) seed(s funnelStep) {
	switch {
	case s.At < f.latest:
		f.without(clockBack)
	case s.Quota < 0 || s.Quota != number(math.Trunc(float64(s.Quota))) || f.config.Burst == 0 || f.config.Validate() != nil:
		f.without(noRate)
	case f.ours == nil:
		f.ours = bucket(f.config, f.rate, f.time, f.capacity-f.left)
		return
	default:
		return
	}
	f.ours = nil
}

// compare compares a step of ours, given how much room there was and what theirs answered.
func (f *funnelReplay) compare(s funnelStep, room float64, ok bool) {
	ours := f.ours.TakeAt(unix(s.At), int(s.Quota)).OK
	quota := float64(s.Quota)
	should := f.left + f.pending(s.At) // the room that there is now
	switch level := bridge.TokensAt(f.ours, unix(s.At)); {
	case ours == ok && math.Abs(level-math.Min(should, f.capacity)) <= f.slack+1e-6:
		return
	case ours == ok && should > level && should-level < 1+f.slack && ok && quota > 0:
		f.part(extra)
	case ours && !ok && quota <= room+f.slack:
		f.part(lumps)
	case math.Abs(room-quota) <= f.slack+1e-6:
		f.part(floatEdge)
	default:
		f.fault("ours has ok %t, and then %v tokens, want %v: %s", ours, level, should, f.seq.Steps[f.at])
	}
	f.ours = nil
}
