package inflight

import (
	"sync"
	"time"
)

// turnover estimates, from the number of calls that have ended, how often a slot is released. It is
// asked only about refused calls, so calls that have a slot do not pay for it, and neither they nor
// their ends read the clock. The mean is taken over the time since an earlier refusal.
type turnover struct {
	mu    sync.Mutex
	since time.Duration
	ended int64         // the calls that had ended then
	mean  time.Duration // between two ends, over the span before; 0 if there is none
}

// span is the shortest time over which turnover takes a mean, unless there is no earlier one.
const span = 100 * time.Millisecond

// longestRetry bounds the estimate, since load may change within it.
const longestRetry = time.Second

// untilFree returns the time until the caller at a place in the queue gets a slot.
func (t *turnover) untilFree(now time.Duration, ended, place int64) time.Duration {
	t.mu.Lock()
	mean := t.update(now, ended)
	t.mu.Unlock()
	if mean > longestRetry/time.Duration(place) {
		return longestRetry
	}
	return mean * time.Duration(place)
}

// update returns the mean time between two ends of calls. If no call has ended since the last span, it
// returns the time that has passed: the next end is not expected sooner.
func (t *turnover) update(now time.Duration, ended int64) time.Duration {
	elapsed := now - t.since
	n := ended - t.ended
	if elapsed < span && t.mean > 0 {
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
