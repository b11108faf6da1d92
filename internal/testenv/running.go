package testenv

import (
	"sync"
	"time"
)

// longestGap is how much of a time without a processor counts as running. A goroutine of a busy
// process may wait this long for its turn.
const longestGap = 100 * time.Millisecond

// runningClock adds up the times between readings, but no more than longestGap of each.
type runningClock struct {
	mu   sync.Mutex
	last time.Time
	sum  time.Duration
}

var processClock = sync.OnceValue(func() *runningClock {
	c := &runningClock{last: time.Now()}
	go func() {
		for range time.NewTicker(longestGap / 10).C {
			c.at(time.Now())
		}
	}()
	return c
})

// Running returns how long the process has run since the first call. Time in which the process got
// no processor does not count, so that a test of how long something takes does not fail on a busy
// machine. It must not be called in a synctest bubble.
func Running() time.Duration { return processClock().at(time.Now()) }

// at returns the sum at the time now.
func (c *runningClock) at(now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if gap := now.Sub(c.last); gap > 0 {
		c.sum += min(gap, longestGap)
		c.last = now
	}
	return c.sum
}
