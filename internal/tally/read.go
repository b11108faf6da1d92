package tally

import (
	"math"
	"time"

	"github.com/weir-go/weir/internal/cusum"
	"github.com/weir-go/weir/internal/latency"
)

// Totals returns what was counted over the whole lifetime.
func (c *Calls) Totals() Counts {
	return c.counts(c.total(slowCounter), c.total(callsCounter), c.total(othersCounter))
}

// Window returns what was counted in the window that ends at the offset. If the totals since were
// read after the window began, it returns only what was counted after them.
func (c *Calls) Window(at time.Duration, since *Counts) Counts {
	return c.counts(c.window(slowCounter, at, since), c.window(callsCounter, at, since), c.window(othersCounter, at, since))
}

// Rates returns the calls with a verdict and the slow calls that Window would return, with the
// failures among each. Slow calls are read first, so no slow call is seen without the calls before
// it.
func (c *Calls) Rates(at time.Duration, since *Counts) (all, slows Pair) {
	if c.last != nil || c.counters[slowCounter].Word() != 0 {
		slows = c.window(slowCounter, at, since)
	}
	return c.window(callsCounter, at, since), slows
}

// RatesAndMarkClean is Rates. If the window is clean and run is empty, Record reports that from now
// on, until a call fails or is slow. A failure must be added to run before it is recorded. Then a
// window whose last failure is in the run is never found clean.
func (c *Calls) RatesAndMarkClean(at time.Duration, since *Counts, run *cusum.Counter) (all, slows Pair) {
	bad := c.badCalls() // read first: a call that is counted meanwhile is not clean
	all, slows = c.Rates(at, since)
	if all.Failures == 0 && slows.Calls == 0 && run.Load() == 0 {
		c.cleanMark.Store(bad)
	}
	return all, slows
}

// NewestBucket returns the offset at which the newest bucket began. No call has been counted into a
// later bucket. It is never if no call was recorded, and for a tally over the last calls.
func (c *Calls) NewestBucket() time.Duration {
	if c.last != nil || c.rollAt.Load() == math.MinInt64 {
		return never
	}
	return time.Duration(c.ring.Began())
}

// Latest returns an offset that the recorded calls have reached: at most a second before the
// latest. It is never if no call was recorded.
func (c *Calls) Latest() time.Duration {
	return time.Duration(max(c.rollAt.Load(), int64(never)+maxAge) - maxAge)
}

// never is earlier than all offsets.
const never time.Duration = math.MinInt64 / 2

// Pause returns the latest time, of at least a second, in which no call was recorded: the pause
// that the offset ends, or else the latest one before. The time before the first call is a pause
// that begins at math.MinInt64. The returned from may be up to a second too late. A tally over the
// last calls knows no pauses, and returns all time up to the offset.
func (c *Calls) Pause(at time.Duration) (from, to time.Duration) {
	if c.last != nil {
		return math.MinInt64, at
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if due := c.rollAt.Load(); int64(at) >= due && isPause(due, int64(at)) {
		return time.Duration(due), at
	}
	return time.Duration(c.pause[0]), time.Duration(c.pause[1])
}

// Latency returns the latencies of the calls in the window that ends at the offset. The window
// moves by a twelfth of its length, or by buckets if they are fewer.
func (c *Calls) Latency(at time.Duration) (l latency.Snapshot) {
	if w := c.latency.Load(); w != nil {
		l = w.Last(int64(at))
	}
	return l
}

// LifetimeLatency returns the latencies of all calls.
func (c *Calls) LifetimeLatency() (l latency.Snapshot) {
	if w := c.latency.Load(); w != nil {
		l = w.Snapshot()
	}
	return l
}

// counts joins the readings of the three counters. They were read one after another, the slow calls
// first. So a slow call that is counted as slow but not as a call is possible only if the window
// began between the two readings. That is why counts bounds the slow calls by the calls.
func (c *Calls) counts(slows, all, other Pair) Counts {
	slows.Calls = min(slows.Calls, all.Calls)
	return Counts{
		Successes:           all.Calls - all.Failures,
		Failures:            all.Failures,
		Slow:                slows.Calls,
		SlowFailures:        min(slows.Failures, slows.Calls, all.Failures),
		Ignored:             other.Calls,
		Refused:             other.Failures,
		ConsecutiveFailures: c.streak.Load(),
	}
}

// total returns what a counter has counted over the whole lifetime.
func (c *Calls) total(counter int) Pair {
	if c.last != nil {
		return c.last.total(counter)
	}
	for {
		rolls := c.rolls.Load()
		p := c.totalNow(counter, rolls)
		if c.rolls.Load() == rolls {
			return p
		}
	}
}

// totalNow returns the total of a counter, by the checkpoint of the given roll. Failures are read
// before the stripes of successes, so no failure is seen without the successes before it. Calls
// grow by one at a time, so at some moment during the reading there were just as many calls, and no
// fewer failures. So if the rate that is read is too high, the rate at that moment was too high as
// well.
func (c *Calls) totalNow(counter int, rolls uint64) Pair {
	return c.checkpoints[rolls&1].total(counter, c.counters[counter].Load())
}

// window returns what a counter has counted in the window that ends at the offset, and after since.
func (c *Calls) window(counter int, at time.Duration, since *Counts) Pair {
	start := since.pairOf(counter)
	if c.last != nil {
		return c.last.window(counter, start)
	}
	for {
		rolls, newest := c.rolls.Load(), c.ring.Newest()
		first := c.firstBucket(int64(at), newest)
		if first <= newest {
			row := c.ring.Row(first)
			start = start.max(Pair{row[2*counter].Load(), row[2*counter+1].Load()})
		}
		now := c.totalNow(counter, rolls)
		switch {
		case c.rolls.Load() != rolls || c.ring.Newest() != newest:
			start = since.pairOf(counter)
		case first > newest: // all buckets of the window began with the present totals
			return Pair{}
		default:
			return now.minus(start)
		}
	}
}

// firstBucket returns the oldest bucket of the window that ends at the offset. An offset before the
// newest bucket counts as in it.
func (c *Calls) firstBucket(at, newest int64) int64 {
	if at < c.rollAt.Load() { // the usual case, without the division
		return newest - c.buckets + 1
	}
	return max(c.ring.Bucket(at), newest) - c.buckets + 1
}
