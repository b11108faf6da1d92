package limiter

import (
	"sort"
	"time"
)

// SlidingLog allows exactly Limit tokens in any window: it remembers when each token was taken, and
// each comes back after Window.
//
// Limiters on a Redis sorted set and Redisson's RRateLimiter work like this. A SlidingLog uses 20
// to 32 bytes for each moment in the window at which tokens were taken. There are at most Limit
// such moments. If that is too much memory, use a [SlidingWindow]. Memory is released as the log
// shrinks.
//
// RetryAfter is minimal. All methods are safe for concurrent use. Only Wait and WaitAtMost block.
// The zero value does not work: use NewSlidingLog.
type SlidingLog struct{ *windowLimiter }

// NewSlidingLog returns a limiter with no tokens taken. It panics with the error of c.Validate if c
// is invalid.
func NewSlidingLog(c WindowConfig) *SlidingLog { return NewSlidingLogAt(c, time.Now()) }

// NewSlidingLogAt is like NewSlidingLog, for use with TakeAt from t0 on.
func NewSlidingLogAt(c WindowConfig, t0 time.Time) *SlidingLog {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	return &SlidingLog{newWindowLimiter(c, t0, &logCounter{window: c.Window, limit: int64(c.Limit), newest: firstPosition})}
}

// logCounter counts the tokens in a log of entries.
type logCounter struct {
	window  time.Duration
	limit   int64
	newest  time.Duration // the latest time given to advance
	log     []logEntry
	skip    int   // entries at the front of the log that no longer count
	total   int64 // all tokens ever counted
	expired int64 // the part of total that no longer counts
}

// logEntry is a time at which tokens were taken, with the total number taken up to then.
type logEntry struct {
	at    time.Duration
	total int64
}

func (l *logCounter) renewed() windowCounter {
	return &logCounter{window: l.window, limit: l.limit, newest: firstPosition}
}

func (l *logCounter) advance(at time.Duration) int64 {
	l.newest = max(l.newest, at)
	for l.skip < len(l.log) && !l.covers(l.log[l.skip].at) {
		l.expired = max(l.expired, l.log[l.skip].total)
		l.skip++
	}
	return l.total - l.expired
}

func (l *logCounter) covers(at time.Duration) bool { return l.newest-at < l.window }

func (l *logCounter) add(n int64) {
	// if refused requests count, only the latest Limit tokens matter
	l.refund(l.total - l.expired + n - l.limit)
	l.total += n
	if last := len(l.log) - 1; last >= l.skip && l.log[last].at == l.newest {
		l.log[last].total = l.total
		return
	}
	l.compact()
	l.log = append(l.log, logEntry{l.newest, l.total})
}

// compact moves the log to the front of its array if the array is full and more than an eighth of
// it becomes free. It moves the log to a smaller array if the log needs less than an eighth of the
// array.
func (l *logCounter) compact() {
	const least = 64
	left := l.log[l.skip:]
	switch {
	case cap(l.log) > least && len(left) < cap(l.log)/8:
		l.log = append(make([]logEntry, 0, cap(l.log)/4), left...)
	case len(l.log) == cap(l.log) && l.skip > len(l.log)/8:
		l.log = l.log[:copy(l.log, left)]
	default:
		return
	}
	l.skip = 0
}

func (l *logCounter) refund(n int64) {
	if n > 0 {
		l.expired += min(n, l.total-l.expired)
	}
	for l.skip < len(l.log) && l.log[l.skip].total <= l.expired {
		l.skip++
	}
}

func (l *logCounter) earliest(n int64) time.Duration {
	windows := max(n-1, 0) / l.limit
	beyond := n - windows*l.limit - (l.limit - (l.total - l.expired))
	if beyond <= 0 {
		return addWindows(l.newest, windows, l.window)
	}
	left := l.log[l.skip:]
	last := sort.Search(len(left)-1, func(i int) bool { return left[i].total >= l.expired+beyond })
	return addWindows(left[last].at+l.window, windows, l.window)
}
