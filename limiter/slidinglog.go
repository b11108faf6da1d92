package limiter

import "time"

// SlidingLog admits Limit permits in any window of length Span, and exactly that: it remembers when
// each was taken, and each comes back when it is Span old.
//
// It is what the limiters on sorted sets do, and Redisson's. It costs 20 to 32 bytes for each moment in the window
// at which permits were taken, Limit of them at most; where that is too much, take a [SlidingWindow].
// Its RetryAfter is minimal. All methods are safe for concurrent use; only Wait and TryWait block.
type SlidingLog struct{ *meter }

// NewSlidingLog makes a limiter with nothing taken. It panics with the error of c.Validate where there is one.
func NewSlidingLog(c WindowConfig) *SlidingLog { return NewSlidingLogAt(c, time.Now()) }

// NewSlidingLogAt makes a limiter that is driven by given times, from t0 on.
func NewSlidingLogAt(c WindowConfig, t0 time.Time) *SlidingLog {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	return &SlidingLog{newMeter(c, t0, &logRule{span: c.Span, limit: int64(c.Limit), newest: earliest})}
}

// logRule counts the entries of a log.
type logRule struct {
	span   time.Duration
	limit  int64
	newest time.Duration // the last time that was given
	log    []entry
	gone   int // entries at the front that no longer count
	count  int64
}

// entry is a moment at which permits were taken.
type entry struct {
	at time.Duration
	n  int64
}

func (l *logRule) used(at time.Duration) int64 {
	l.newest = max(l.newest, at)
	for l.gone < len(l.log) && l.newest-l.log[l.gone].at >= l.span {
		l.drop()
	}
	return l.count
}

func (l *logRule) add(n int64) {
	l.giveBack(l.count + n - l.limit) // where refused ones are counted, only the last matter
	l.count += n
	if last := len(l.log) - 1; last >= l.gone && l.log[last].at == l.newest {
		l.log[last].n += n
		return
	}
	// Only where there is no room is it made in front, and where that is worth it.
	if len(l.log) == cap(l.log) && l.gone > len(l.log)/8 {
		l.log = l.log[:copy(l.log, l.log[l.gone:])]
		l.gone = 0
	}
	l.log = append(l.log, entry{l.newest, n})
}

func (l *logRule) giveBack(n int64) {
	for n > 0 && l.gone < len(l.log) {
		oldest := &l.log[l.gone]
		if oldest.n > n {
			oldest.n -= n
			l.count -= n
			return
		}
		n -= oldest.n
		l.drop()
	}
}

// drop forgets the oldest entry.
func (l *logRule) drop() {
	l.count -= l.log[l.gone].n
	l.gone++
}

func (l *logRule) due(n int64) time.Duration {
	laps := max(n-1, 0) / l.limit
	beyond := n - laps*l.limit - (l.limit - l.count)
	at := l.newest
	if beyond > 0 && beyond == l.count { // all of it, which every answer asks for
		return later(l.log[len(l.log)-1].at+l.span, laps, l.span)
	}
	for i := l.gone; beyond > 0; i++ {
		at = l.log[i].at + l.span
		beyond -= l.log[i].n
	}
	return later(at, laps, l.span)
}
