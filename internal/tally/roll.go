package tally

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/latency"
)

// checkpoint holds the counters at the last roll, and the totals at that time.
type checkpoint [counterCount]struct {
	count           atomic.Uint64
	calls, failures atomic.Int64
}

// total returns the total of a counter that stands at count.
func (p *checkpoint) total(counter int, count uint64) Pair {
	d := count - p[counter].count.Load()
	return Pair{p[counter].calls.Load() + int64(uint32(d)), p[counter].failures.Load() + int64(d>>32)}
}

// roll begins the bucket that holds the offset, unless another goroutine has done so. Record does
// not report clean again until RatesAndMarkClean has looked at the window. This gives the caller of
// Record an occasion, from time to time, for work that takes longer.
func (c *Calls) roll(at int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	due := c.rollAt.Load()
	if at < due {
		return
	}
	if isPause(due, at) {
		c.pause = [2]int64{due, at}
	}
	c.begin(at, max(c.ring.Bucket(at), c.ring.Newest()), c.ring.Advance, (*latency.Window).Advance)
}

// Restart begins an empty window at the offset, which may be earlier than any before: the clock is
// another one. It does nothing unless the offset is more than a second before Latest, because
// another goroutine has restarted the window. Totals are kept.
func (c *Calls) Restart(at time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if int64(at)+maxAge >= int64(c.Latest()) {
		return
	}
	c.streak.Store(0)
	c.pause = [2]int64{math.MinInt64, int64(at)}
	if c.last != nil {
		c.last.restart()
		c.rollAt.Store(int64(at) + maxAge)
		return
	}
	c.begin(int64(at), c.ring.Bucket(int64(at)), c.ring.Restart, (*latency.Window).Restart)
}

// begin begins a bucket at the offset, with the functions that advance or restart the rings. The
// lock is held.
func (c *Calls) begin(at, bucket int64, advance func(int64, []int64), advanceLatency func(*latency.Window, int64) int64) {
	rolls := c.rolls.Load()
	current, next := &c.checkpoints[rolls&1], &c.checkpoints[(rolls+1)&1]
	var totals [2 * counterCount]int64
	for i := counterCount - 1; i >= 0; i-- { // slow calls before calls: see Record
		count := c.counters[i].Load()
		p := current.total(i, count)
		next[i].count.Store(count)
		next[i].calls.Store(p.Calls)
		next[i].failures.Store(p.Failures)
		totals[2*i], totals[2*i+1] = p.Calls, p.Failures
	}
	advance(bucket, totals[:])
	c.rolls.Store(rolls + 1)
	rollAt := c.ring.End(bucket)
	if soon := at + maxAge; soon > at {
		rollAt = min(rollAt, soon)
	}
	if c.timed {
		rollAt = min(rollAt, advanceLatency(c.latencyWindow(), at))
	}
	c.cleanMark.Store(c.badCalls() - 1)
	c.rollAt.Store(rollAt) // stored last, so that a goroutine that sees it finds the bucket ready
}

// isPause reports whether no call was recorded for a second before the offset at. due is the offset
// from which a call had to roll.
func isPause(due, at int64) bool { return due == math.MinInt64 || at-due >= maxAge }

// note makes the offset of a tally over the last calls the Latest one, once per second.
func (c *Calls) note(at int64) {
	if at >= c.rollAt.Load() {
		c.rollAt.Store(at + maxAge)
	}
}

// latencyWindow returns the histogram, and makes it at the first roll. The lock is held.
func (c *Calls) latencyWindow() *latency.Window {
	l := c.latency.Load()
	if l == nil {
		l = latency.NewWindow(c.ring.Width(), c.buckets)
		l.Restart(c.ring.Began())
		c.latency.Store(l)
	}
	return l
}
