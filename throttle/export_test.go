package throttle

import (
	"time"

	"github.com/weir-go/weir/window"
)

// NewAt is like New, but the throttle begins at t0 and uses the times given to the At functions.
func NewAt(name string, c Config, t0 time.Time) *Throttle { return newAt(name, c, t0) }

// SetRandom sets the source of random numbers, and how often a call is always allowed. It returns
// t.
func (t *Throttle) SetRandom(random func() float64, every time.Duration) *Throttle {
	t.random, t.every = random, every
	return t
}

func (t *Throttle) AllowAt(u time.Time) (Permit, error) { return t.allow(t.clock.At(u)) }
func (t *Throttle) RefusalRateAt(u time.Time) float64 {
	return t.setting.Load().refusalRate(t.clock.Peek(u))
}

func (t *Throttle) RefusalRate() float64 { return t.setting.Load().refusalRate(t.peekNow()) }

func (t *Throttle) CountsAt(u time.Time) window.Counts {
	return t.setting.Load().counts(t.clock.Peek(u))
}

func (t *Throttle) Counts() window.Counts { return t.setting.Load().counts(t.peekNow()) }

func (p *Permit) RecordAt(u time.Time, o window.Outcome) bool {
	if !p.use() {
		return false
	}
	p.throttle.record(p.throttle.clock.At(u), o)
	return true
}

// EndedWindows returns how many windows that have ended are in memory.
func (t *Throttle) EndedWindows() int { return len(t.setting.Load().recent) }
