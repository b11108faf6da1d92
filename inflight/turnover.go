package inflight

import (
	"sync"
	"time"

	"github.com/weir-go/weir/internal/clock"
)

// turnover estimates, from the number of calls that have ended, how often a slot is released while
// all slots are in use. resume is called when the first caller starts to wait, and pause when no
// caller waits any more. Only the time between them counts. Before the first call of resume, all of
// the time counts. The estimate costs nothing for calls that get a slot at once: neither their
// starts nor their ends read the clock.
type turnover struct {
	mu    sync.Mutex
	since time.Duration
	ended int64         // the calls that had ended at that time
	mean  time.Duration // mean time between two ends in the previous span; 0 if there is none

	paused   bool
	pausedAt time.Duration
	endedAt  int64 // the calls that had ended when it was paused
}

const (
	// span is the shortest time over which turnover takes a mean, unless there is no earlier one.
	span = 100 * time.Millisecond
	// enoughEnds is the number of ended calls after which the mean of the present span is used
	// instead of that of the previous span.
	enoughEnds = 10
	// longestRetry bounds the estimate, since load may change within it.
	longestRetry = time.Second
)

// resume notes that a caller waits and none did before.
func (t *turnover) resume(now time.Duration, ended int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.paused {
		t.since += now - t.pausedAt
		t.ended += ended - t.endedAt
	} else {
		t.mean = t.update(now, ended)
		t.since, t.ended = now, ended
	}
	t.paused = false
}

// pause notes that no caller waits any more.
func (t *turnover) pause(now time.Duration, ended int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.paused {
		t.update(now, ended)
		t.paused, t.pausedAt, t.endedAt = true, now, ended
	}
}

// untilFree returns the time until the caller at a place in the queue, from 1, gets a slot.
func (t *turnover) untilFree(now time.Duration, ended int64, place float64) time.Duration {
	t.mu.Lock()
	mean := t.update(now, ended)
	t.mu.Unlock()
	return time.Duration(min(float64(mean)*place, float64(longestRetry)))
}

// update returns the mean time between two ends of calls. If no call has ended since the last span,
// it returns the time that has passed: the next end is not expected sooner.
func (t *turnover) update(now time.Duration, ended int64) time.Duration {
	if t.paused {
		now, ended = t.pausedAt, t.endedAt
	}
	if now < t.since-clock.ReadTolerance { // another clock, as in a testing/synctest bubble
		t.since, t.ended = now, ended
	}
	elapsed, n := max(now-t.since, 0), ended-t.ended // now may be that of a slow caller
	if elapsed < span && n < enoughEnds && t.mean > 0 {
		return t.mean
	}
	if n <= 0 {
		return max(elapsed, t.mean)
	}
	mean := elapsed / time.Duration(n)
	if elapsed >= span {
		t.since, t.ended, t.mean = now, ended, mean
	}
	return mean
}
