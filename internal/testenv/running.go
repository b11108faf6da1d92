package testenv

import (
	"sync"
	"time"
)

// longestGap bounds how much of a pause without a processor counts as running time. A goroutine of
// a busy process may wait this long for its turn.
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

// Undisturbed calls f. It calls f again if the process got no processor for longer than most
// meanwhile, up to five times in all. It is for tests of programs that depend on time and cannot
// run in a synctest bubble.
func Undisturbed(most time.Duration, f func()) {
	for range 5 {
		began, running := time.Now(), Running()
		f()
		if lost := time.Since(began) - (Running() - running); lost <= most {
			return
		}
	}
}

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
