package conformance_test

import (
	"time"

	"github.com/weir-go/weir/limiter"
)

type fixedConfig struct {
	Name string `json:"name"`
	TTL  int64  `json:"ttl_s"`
	Max  int    `json:"max"`
	T0   int64  `json:"t0_ms"`
}

type fixedStep struct {
	At int64 `json:"t_ms"`

	Limited *bool  `json:"limited"`
	Value   *int   `json:"value"`
	Dies    *int64 `json:"dies_ms"`
}

// fixedCounterReplayer replays the counter of document 004, INCR and EXPIRE, and compares it with a
// FixedWindow. The windows of the counter begin with the first call of a key, those of a
// FixedWindow lie on a grid, so each window of the counter is moved to one of the grid.
var fixedCounterReplayer = replaying("t_ms", func(r *run, c fixedConfig) func(fixedStep) {
	// a key lives for its last millisecond too
	span := time.Duration(c.TTL*1000+1) * time.Millisecond
	grid := time.Unix(0, c.T0*1e6/int64(span)*int64(span))
	weir := limiter.NewFixedWindow(limiter.WindowConfig{Limit: c.Max, Window: span})
	value, dies := 0, int64(-1)
	return func(s fixedStep) {
		if value == 0 || s.At > dies {
			value, dies = 0, s.At+c.TTL*1000
			grid = grid.Add(span)
		}
		value++
		checkSame(r, "limited", s.Limited, value > c.Max)
		checkSame(r, "value", s.Value, value)
		checkSame(r, "dies_ms", s.Dies, dies)
		got := weir.TakeAt(grid.Add(time.Duration(s.At-dies+c.TTL*1000)*time.Millisecond), 1)
		if got.OK != (value <= c.Max) || got.Remaining != max(c.Max-value, 0) {
			r.mismatch("weir has %+v for call %d of %d: %s", got, value, c.Max, r.seq.Steps[r.at])
		}
	}
})
