package tally

import (
	"sync"
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

// The columns of a row: the buckets, and then these. Times are added up in
// microseconds: in nanoseconds, ten thousand calls of a second each second would
// overflow within eleven days.
const (
	colSum = Buckets + iota
	colUnder
	colOver
	columns
)

// latency counts how long calls took. Its cells only grow; the ring remembers what
// they were when each part of the window began.
type latency struct {
	parts int64
	cells [columns]atomic.Int64
	max   atomic.Int64
	ring  *ring.Ring
	mu    sync.Mutex // held to roll
}

func newLatency(width int64, buckets int64) *latency {
	n := min(buckets, parts)
	return &latency{parts: n, ring: ring.New((width*buckets+n-1)/n, int(n), columns)}
}

// record counts a time, which is not negative.
func (l *latency) record(at, took int64) {
	if l.ring.Due(at) {
		l.roll(at)
	}
	l.cells[slot(took)].Add(1)
	l.cells[colSum].Add((min(took, longestTime) + 500) / 1000)
	switch {
	case took <= shortestTime:
		l.cells[colUnder].Add(1)
	case took > longestTime:
		l.cells[colOver].Add(1)
	}
	for old := l.max.Load(); took > old && !l.max.CompareAndSwap(old, took); old = l.max.Load() {
	}
}

func (l *latency) roll(at int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var now [columns]int64
	for i := range now {
		now[i] = l.cells[i].Load()
	}
	l.ring.Advance(l.ring.Bucket(at), now[:])
}

// window returns what was counted in the window as seen from the offset, and with
// the whole life if at is nil.
func (l *latency) window(at *int64) Latencies {
	for {
		newest := l.ring.Newest()
		var began [columns]int64
		if at != nil {
			first := max(l.ring.Bucket(*at), newest) - l.parts + 1
			if first > newest {
				return Latencies{}
			}
			row := l.ring.Row(first)
			for i := range began {
				began[i] = row[i].Load()
			}
		}
		var d [columns]int64
		for i := range d {
			d[i] = max(l.cells[i].Load()-began[i], 0)
		}
		if l.ring.Newest() == newest {
			return Latencies{
				Counts: [Buckets]int64(d[:Buckets]), Sum: float64(d[colSum]) / 1e6,
				Max: time.Duration(l.max.Load()), Under: d[colUnder], Over: d[colOver],
			}
		}
	}
}

// timing makes the calls' latency count when it is first needed: it takes some
// forty kilobytes.
type timing struct {
	on   bool
	live atomic.Pointer[latency]
}

func (t *timing) record(c *Calls, at, took int64) {
	l := t.live.Load()
	if l == nil {
		t.live.CompareAndSwap(nil, newLatency(c.ring.Width(), c.buckets))
		l = t.live.Load()
	}
	l.record(at, max(took, 0))
}

// Time makes the tally count how long calls took from now on. It must be called
// before the first call is recorded.
func (c *Calls) Time() { c.timing.on = true }

// Latency returns how long the calls took that ended in the window, as seen from
// the offset. The window moves by a twelfth of its length, or by buckets where they
// are fewer.
func (c *Calls) Latency(at time.Duration) (l Latencies) {
	if live := c.timing.live.Load(); live != nil {
		offset := int64(at)
		l = live.window(&offset)
	}
	return l
}

// LifetimeLatency returns how long all calls took.
func (c *Calls) LifetimeLatency() (l Latencies) {
	if live := c.timing.live.Load(); live != nil {
		l = live.window(nil)
	}
	return l
}
