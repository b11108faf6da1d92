package tally

import (
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/ring"
)

// The reach of the buckets, in nanoseconds: what is not longer than 2⁻²⁰ s, and what
// is longer than 2¹² s, is counted apart.
const (
	shortestTime = int64(time.Second) >> 20
	longestTime  = int64(time.Second) << 12
)

// Latencies has the fields of a live histogram read at one moment.
type Latencies struct {
	Counts      [Buckets]int64
	Sum         float64 // seconds
	Max         time.Duration
	Under, Over int64
}

// parts is how many parts the window of latencies has at the most: a row takes two
// kilobytes, so the window of calls' own buckets would be too many.
const parts = 12

// The columns of a row: the buckets, and then these. What lies under and over the buckets
// is in its own column alone, and part of the first and the last bucket for readers. Times are added up in
// microseconds: in nanoseconds, ten thousand calls of a second each second would
// overflow within eleven days.
const (
	colSum = Buckets + iota
	colUnder
	colOver
	columns
)

// Times counts how long things took, over a whole life, in cells that only grow. The
// zero value has counted nothing. All methods may be called from any number of
// goroutines.
type Times struct {
	cells [columns]atomic.Int64
	max   atomic.Int64
}

// Record counts a time; one below 0 counts as 0.
func (t *Times) Record(took time.Duration) {
	ns, col := int64(took), colUnder
	if ns > shortestTime {
		col = colOver
		if ns <= longestTime {
			col = slot(ns)
		}
	}
	if ns >= 500 {
		t.cells[colSum].Add((min(ns, longestTime) + 500) / 1000)
	}
	for old := t.max.Load(); ns > old && !t.max.CompareAndSwap(old, ns); old = t.max.Load() {
	}
	// Last, and read first: a reader that knows the call knows its part in the sum, and in the maximum.
	t.cells[col].Add(1)
}

// Lifetime returns what was counted.
func (t *Times) Lifetime() Latencies { return t.since(&[columns]int64{}) }

// since returns what was counted after the cells were so.
func (t *Times) since(began *[columns]int64) Latencies {
	var d [columns]int64
	for i := range d {
		d[i] = max(t.cells[i].Load()-began[i], 0)
	}
	d[0] += d[colUnder]
	d[Buckets-1] += d[colOver]
	return Latencies{
		Counts: [Buckets]int64(d[:Buckets]), Sum: float64(d[colSum]) / 1e6,
		Max: time.Duration(t.max.Load()), Under: d[colUnder], Over: d[colOver],
	}
}

// latency counts how long calls took in a window. The ring remembers what the cells
// were when each part of the window began.
type latency struct {
	Times
	parts int64
	ring  *ring.Ring
}

func newLatency(width int64, buckets int64) *latency {
	n := min(buckets, parts)
	return &latency{parts: n, ring: ring.New((width*buckets+n-1)/n, int(n), columns)}
}

// roll begins the part of the window that holds the offset, unless it has begun, and
// returns when the newest part ends.
func (l *latency) roll(at int64) (due int64) {
	if l.ring.Due(at) {
		var now [columns]int64
		for i := range now {
			now[i] = l.cells[i].Load()
		}
		l.ring.Advance(l.ring.Bucket(at), now[:])
	}
	return l.ring.End(l.ring.Newest())
}

// window returns what was counted in the window as seen from the offset.
func (l *latency) window(at int64) Latencies {
	for {
		newest := l.ring.Newest()
		first := max(l.ring.Bucket(at), newest) - l.parts + 1
		if first > newest {
			return Latencies{}
		}
		var began [columns]int64
		row := l.ring.Row(first)
		for i := range began {
			began[i] = row[i].Load()
		}
		counted := l.since(&began)
		if l.ring.Newest() == newest {
			return counted
		}
	}
}

// Time makes the tally count how long calls took from now on. It must be called
// before the first call is recorded.
func (c *Calls) Time() { c.timed = true }

// rollTimes is roll for how long calls took. The lock is held.
func (c *Calls) rollTimes(at int64) (due int64) {
	l := c.times.Load()
	if l == nil {
		l = newLatency(c.ring.Width(), c.buckets)
		c.times.Store(l)
	}
	return l.roll(at)
}

// Latency returns how long the calls took that ended in the window, as seen from
// the offset. The window moves by a twelfth of its length, or by buckets where they
// are fewer.
func (c *Calls) Latency(at time.Duration) (l Latencies) {
	if live := c.times.Load(); live != nil {
		l = live.window(int64(at))
	}
	return l
}

// LifetimeLatency returns how long all calls took.
func (c *Calls) LifetimeLatency() (l Latencies) {
	if live := c.times.Load(); live != nil {
		l = live.Lifetime()
	}
	return l
}
