package limiter

import "time"

// FixedWindow allows up to Limit tokens per window of time. Windows are aligned to the Unix time
// that the wall clock shows when the limiter is created: windows of a minute begin at full minutes,
// windows of a day at midnight UTC. Later steps of the wall clock do not move them.
//
// It is the simplest limiter to explain (INCR and EXPIRE in Redis) and has the loosest bound: it
// may allow up to twice Limit almost at once, around the end of one window and the start of the
// next.
//
// RetryAfter is minimal. All methods are safe for concurrent use. Only Wait and WaitAtMost block.
// The zero value does not work: use NewFixedWindow.
type FixedWindow struct{ *windowLimiter }

// NewFixedWindow returns a limiter whose current window is empty. It panics with the error of
// c.Validate if c is invalid.
func NewFixedWindow(c WindowConfig) *FixedWindow { return NewFixedWindowAt(c, time.Now()) }

// NewFixedWindowAt is like NewFixedWindow, for use with TakeAt from t0 on.
func NewFixedWindowAt(c WindowConfig, t0 time.Time) *FixedWindow {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	phase := time.Duration(t0.UnixNano()) % c.Window
	if phase < 0 {
		phase += c.Window
	}
	// long before t0, because TakeAt may be called with an earlier time
	begin := -phase + firstPosition/c.Window*c.Window
	return &FixedWindow{newWindowLimiter(c, t0, &fixedCounter{window: c.Window, begin: begin, limit: int64(c.Limit)})}
}

// fixedCounter counts the tokens since begin, the start of the current window.
type fixedCounter struct {
	window, begin time.Duration
	limit, count  int64
}

func (f *fixedCounter) advance(at time.Duration) int64 {
	if at-f.begin >= f.window {
		f.begin += (at - f.begin) / f.window * f.window
		f.count = 0
	}
	return f.count
}

// add stops at the limit, so that refused requests are never counted beyond a full window.
func (f *fixedCounter) add(n int64) { f.count = min(f.count+n, f.limit) }

func (f *fixedCounter) renewed() windowCounter {
	begin := f.begin % f.window
	if begin > 0 {
		begin -= f.window
	}
	return &fixedCounter{window: f.window, begin: begin + firstPosition/f.window*f.window, limit: f.limit}
}

func (f *fixedCounter) covers(at time.Duration) bool { return at >= f.begin }

func (f *fixedCounter) refund(n int64) { f.count = max(f.count-n, 0) }

func (f *fixedCounter) earliest(n int64) time.Duration {
	beyond := n - (f.limit - f.count)
	if beyond <= 0 {
		return f.begin
	}
	return addWindows(f.begin, (beyond+f.limit-1)/f.limit, f.window)
}
