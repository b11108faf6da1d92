package latency

import (
	"github.com/weir-go/weir/internal/ring"
)

// maxBuckets bounds the buckets of a Window, each of which takes two kilobytes.
const maxBuckets = 12

// Window is a Histogram that also knows its values when each recent bucket of time began. Its owner
// chooses the origin of the offsets.
type Window struct {
	Histogram
	buckets int64
	ring    *ring.Ring
}

// NewWindow returns an empty window as long as buckets of the given width in nanoseconds. It has at
// most 12 buckets itself.
func NewWindow(width, buckets int64) *Window {
	n := min(buckets, maxBuckets)
	return &Window{buckets: n, ring: ring.New((width*buckets+n-1)/n, int(n), columns)}
}

// Advance begins the bucket that holds the offset, unless it has begun, and returns the offset at
// which the newest bucket ends. One goroutine at a time may call it or Restart.
func (w *Window) Advance(at int64) (end int64) {
	if w.ring.Due(at) {
		now := w.totals()
		w.ring.Advance(w.ring.Bucket(at), now[:])
	}
	return w.ring.End(w.ring.Newest())
}

// Restart is Advance for a clock that has gone back. It forgets the durations so far, except for
// the Histogram.
func (w *Window) Restart(at int64) (end int64) {
	now := w.totals()
	w.ring.Restart(w.ring.Bucket(at), now[:])
	return w.ring.End(w.ring.Newest())
}

func (w *Window) totals() (now [columns]int64) {
	for i := range now {
		now[i] = w.counts[i].Load()
	}
	return now
}

// Last returns the durations in the window that ends at the offset.
func (w *Window) Last(at int64) Snapshot {
	for {
		newest := w.ring.Newest()
		first := max(w.ring.Bucket(at), newest) - w.buckets + 1
		if first > newest {
			return Snapshot{}
		}
		var start [columns]int64
		row := w.ring.Row(first)
		for i := range start {
			start[i] = row[i].Load()
		}
		counted := w.since(&start)
		if w.ring.Newest() == newest {
			return counted
		}
	}
}
