package limiter

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// FixedWindowConfig configures a [FixedWindow].
type FixedWindowConfig struct {
	// Limit is the most permits in each window, from 1 to 2^31-1. Must be given.
	Limit int
	// Window is the length of a window, from 1 ns to 36 years. Must be given.
	Window time.Duration
	// CountRefused counts refused requests as well, so that a caller that keeps asking stays locked
	// out. Requests to a [Joint] count too, whichever member refused them, but requests that wait do
	// not. Default false.
	CountRefused bool
	// MaxWaiters is the most callers that may wait at once; the next gets ErrQueueFull. Default: no
	// bound.
	MaxWaiters int
	// Name stands in errors and metrics. A limiter with a name keeps statistics and is a [stat.Source].
	// Default: no name and no statistics.
	Name string
	// Named is what a limiter with a name does besides. Default [NamedConfig]'s own.
	Named NamedConfig
}

// maxWindow bounds a window, so that sums of times do not overflow.
const maxWindow = 36 * 365 * 24 * time.Hour

// Validate returns nil for a configuration that makes sense, and otherwise an error that names all faults.
func (c FixedWindowConfig) Validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf("limiter: "+format, args...)) }
	if c.Limit < 1 || c.Limit > math.MaxInt32 {
		fault("Limit is %d, must lie between 1 and %d", c.Limit, math.MaxInt32)
	}
	if c.Window < 1 || c.Window > maxWindow {
		fault("Window is %s, must be above 0 and at most %s", c.Window, maxWindow)
	}
	if c.MaxWaiters < 0 {
		fault("MaxWaiters is %d, must be at least 1 (or 0 for no bound)", c.MaxWaiters)
	}
	faults = append(faults, c.Named.validateFor(c.Name))
	return errors.Join(faults...)
}

// FixedWindow admits Limit permits in each window of time. The windows lie on the grid of Unix time, as the clock
// stood when it was made: those of a minute begin with the minute, those of a day at midnight UTC. Later steps of
// the wall clock do not move them.
//
// It is the cheapest thing to explain (INCR and EXPIRE, in Redis), and the one with the loosest bound: the
// end of one window and the beginning of the next can together admit twice Limit within a moment.
// Its RetryAfter is minimal. All methods are safe for concurrent use; only Wait and WaitAtMost block.
type FixedWindow struct{ *meter }

// NewFixedWindow makes a limiter whose present window is empty. It panics with the error of
// c.Validate where there is one.
func NewFixedWindow(c FixedWindowConfig) *FixedWindow { return NewFixedWindowAt(c, time.Now()) }

// NewFixedWindowAt makes a limiter that is driven by given times, from t0 on.
func NewFixedWindowAt(c FixedWindowConfig, t0 time.Time) *FixedWindow {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	phase := time.Duration(t0.UnixNano()) % c.Window
	if phase < 0 {
		phase += c.Window
	}
	begin := -phase + earliest/c.Window*c.Window // long before t0, as the first time that is given may be earlier
	return &FixedWindow{newMeter(c, t0, &fixedRule{window: c.Window, begin: begin, limit: int64(c.Limit)})}
}

// fixedRule counts in the window that began last.
type fixedRule struct {
	window, begin time.Duration
	limit, count  int64
}

func (f *fixedRule) used(at time.Duration) int64 {
	if at-f.begin >= f.window {
		f.begin += (at - f.begin) / f.window * f.window
		f.count = 0
	}
	return f.count
}

func (f *fixedRule) add(n int64) { f.count = min(f.count+n, f.limit) } // refused ones make no more than full

func (f *fixedRule) counts(at time.Duration) bool { return at >= f.begin }

func (f *fixedRule) giveBack(n int64) { f.count = max(f.count-n, 0) }

func (f *fixedRule) due(n int64) time.Duration {
	beyond := n - (f.limit - f.count)
	if beyond <= 0 {
		return f.begin
	}
	return later(f.begin, (beyond+f.limit-1)/f.limit, f.window)
}
