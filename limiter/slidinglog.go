package limiter

import (
	"sort"
	"time"
)

// SlidingLogConfig configures a [SlidingLog].
type SlidingLogConfig struct {
	// Limit is the most permits in any window, from 1 to 2^31-1. Must be given.
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

// Validate returns nil for a configuration that makes sense, and otherwise an error that names all faults.
func (c SlidingLogConfig) Validate() error { return FixedWindowConfig(c).Validate() }

// SlidingLog admits Limit permits in any window, and exactly that: it remembers when
// each was taken, and each comes back after Window.
//
// It is what the limiters on sorted sets do, and Redisson's. It costs 20 to 32 bytes for each moment in the window
// at which permits were taken, Limit of them at most; where that is too much, take a [SlidingWindow]. What it does not need
// any longer it gives back as permits are taken.
// Its RetryAfter is minimal. All methods are safe for concurrent use; only Wait and WaitAtMost block.
type SlidingLog struct{ *meter }

// NewSlidingLog makes a limiter with nothing taken. It panics with the error of c.Validate where there is one.
func NewSlidingLog(c SlidingLogConfig) *SlidingLog { return NewSlidingLogAt(c, time.Now()) }

// NewSlidingLogAt makes a limiter that is driven by given times, from t0 on.
func NewSlidingLogAt(c SlidingLogConfig, t0 time.Time) *SlidingLog {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	return &SlidingLog{newMeter(FixedWindowConfig(c), t0, &logRule{window: c.Window, limit: int64(c.Limit), newest: earliest})}
}

// logRule counts the entries of a log.
type logRule struct {
	window time.Duration
	limit  int64
	newest time.Duration // the last time that was given
	log    []entry
	gone   int   // entries at the front that no longer count
	total  int64 // permits that were ever taken
	past   int64 // of these the first, which no longer count
}

// entry is a moment at which permits were taken, and how many had been taken in all by then.
type entry struct {
	at    time.Duration
	total int64
}

func (l *logRule) used(at time.Duration) int64 {
	l.newest = max(l.newest, at)
	for l.gone < len(l.log) && !l.counts(l.log[l.gone].at) {
		l.past = max(l.past, l.log[l.gone].total)
		l.gone++
	}
	return l.total - l.past
}

func (l *logRule) counts(at time.Duration) bool { return l.newest-at < l.window }

func (l *logRule) add(n int64) {
	l.giveBack(l.total - l.past + n - l.limit) // where refused ones are counted, only the last matter
	l.total += n
	if last := len(l.log) - 1; last >= l.gone && l.log[last].at == l.newest {
		l.log[last].total = l.total
		return
	}
	l.makeRoom()
	l.log = append(l.log, entry{l.newest, l.total})
}

// makeRoom moves the log to the front of its memory where it has come to the end and that is worth it, and to less of it
// where it needs but an eighth.
func (l *logRule) makeRoom() {
	const least = 64
	left := l.log[l.gone:]
	switch {
	case cap(l.log) > least && len(left) < cap(l.log)/8:
		l.log = append(make([]entry, 0, cap(l.log)/4), left...)
	case len(l.log) == cap(l.log) && l.gone > len(l.log)/8:
		l.log = l.log[:copy(l.log, left)]
	default:
		return
	}
	l.gone = 0
}

func (l *logRule) giveBack(n int64) {
	if n > 0 {
		l.past += min(n, l.total-l.past)
	}
	for l.gone < len(l.log) && l.log[l.gone].total <= l.past {
		l.gone++
	}
}

func (l *logRule) due(n int64) time.Duration {
	laps := max(n-1, 0) / l.limit
	beyond := n - laps*l.limit - (l.limit - (l.total - l.past))
	if beyond <= 0 {
		return later(l.newest, laps, l.window)
	}
	left := l.log[l.gone:]
	last := sort.Search(len(left)-1, func(i int) bool { return left[i].total >= l.past+beyond })
	return later(left[last].at+l.window, laps, l.window)
}
