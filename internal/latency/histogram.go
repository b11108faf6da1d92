package latency

import (
	"sync/atomic"
	"time"
)

// Durations of at most 2⁻²⁰ s and of more than 2¹² s are outside the buckets.
const (
	minNanos = int64(time.Second) >> 20
	maxNanos = int64(time.Second) << 12
)

// The columns of a histogram: the buckets, and then these. A duration outside the buckets is
// counted in its own column only; a Snapshot adds it to the first or the last bucket. The sum is
// kept in microseconds: in nanoseconds, ten thousand calls of 1s per second would overflow within
// eleven days.
const (
	columnSum = Buckets + iota
	columnUnder
	columnOver
	columns
)

// Snapshot is a histogram at one moment. It has the fields of window.Latency and converts to it.
type Snapshot struct {
	Counts      [Buckets]int64
	Sum         float64 // seconds
	Max         time.Duration
	Under, Over int64
}

// Histogram counts durations over a lifetime. The zero value is empty. All methods may be called
// from any number of goroutines.
type Histogram struct {
	counts [columns]atomic.Int64
	max    atomic.Int64
}

// Record counts a duration. A negative one counts as 0.
func (h *Histogram) Record(d time.Duration) {
	ns := int64(d)
	column, micros := columnOf(ns)
	if micros > 0 {
		h.counts[columnSum].Add(micros)
	}
	for old := h.max.Load(); ns > old && !h.max.CompareAndSwap(old, ns); old = h.max.Load() {
	}
	// The bucket is written last and read first, so a reader that sees the call also sees its part
	// of the sum and of the maximum.
	h.counts[column].Add(1)
}

// columnOf returns the column that counts a duration, and what the duration adds to columnSum.
func columnOf(ns int64) (column int, micros int64) {
	column = columnUnder
	if ns > minNanos {
		column = columnOver
		if ns <= maxNanos {
			column = bucketOf(ns)
		}
	}
	if ns >= 500 {
		micros = (min(ns, maxNanos) + 500) / 1000
	}
	return column, micros
}

// Snapshot returns everything that was counted.
func (h *Histogram) Snapshot() Snapshot { return h.since(&[columns]int64{}) }

// since returns what was counted after the columns had the values of start.
func (h *Histogram) since(start *[columns]int64) Snapshot {
	var d [columns]int64
	for i := range d {
		d[i] = max(h.counts[i].Load()-start[i], 0)
	}
	return newSnapshot(&d, time.Duration(h.max.Load()))
}

func newSnapshot(d *[columns]int64, longest time.Duration) Snapshot {
	d[0] += d[columnUnder]
	d[Buckets-1] += d[columnOver]
	return Snapshot{
		Counts: [Buckets]int64(d[:Buckets]), Sum: float64(d[columnSum]) / 1e6,
		Max: longest, Under: d[columnUnder], Over: d[columnOver],
	}
}
