package window

import (
	"sync"
	"time"

	"github.com/weir-go/weir/internal/clock"
	"github.com/weir-go/weir/internal/ring"
)

// View is a moving window over somebody else's lifetime totals. It learns them by
// sampling, so that a window of minutes or days costs the calls nothing:
//
//	view := window.NewView(window.Config{Span: 5 * time.Minute, Buckets: 60})
//	for range ticker.C {
//		view.Sample(payments.Totals())
//		fmt.Println(view.Counts().FailureRate())
//	}
//
// What happened between two samples counts as of the later one, so a reading is
// as fine as the sampling is. The first sample is where the view begins: what was
// counted before it is history. If any figure of the totals falls, their owner began
// anew: all of them are then what was counted since, as for Prometheus' increase.
// Totals are read as figures from 0 to 2⁶⁰.
//
// All methods may be called from any number of goroutines. But samples have to come in the
// order in which the totals were read, since an older one would look like a new beginning: let
// one goroutine take them. Given an earlier time than the latest sample, an older one is ignored.
type View struct {
	clock clock.Clock
	shape Config

	mu      sync.Mutex
	ring    *ring.Ring
	seen    bool
	first   time.Duration // when the first sample came
	latest  time.Duration // when the latest sample came
	last    Totals        // the latest sample
	counted Counts        // all that was counted since the first
}

const viewCols = 6

// NewView returns a view that has seen nothing yet, on the real clock. It panics
// with the error of c.Validate if there is one.
func NewView(c Config) *View { return NewViewAt(c, time.Now()) }

// NewViewAt is NewView for a view that begins at t0 and lives on given times.
func NewViewAt(c Config, t0 time.Time) *View {
	c = c.must()
	return &View{clock: clock.Clock{Epoch: t0}, shape: c, ring: ring.New(int64(c.width()), c.Buckets, viewCols)}
}

// Sample tells the view what the totals are now.
func (v *View) Sample(total Totals) { v.sample(v.clock.Now(), total) }

// SampleAt is Sample at the time t.
func (v *View) SampleAt(t time.Time, total Totals) { v.sample(v.clock.At(t), total) }

// Counts returns the calls of the last span, as far as they were sampled.
func (v *View) Counts() Counts { return v.counts(v.clock.PeekNow()) }

// CountsAt is Counts as seen at the time t.
func (v *View) CountsAt(t time.Time) Counts { return v.counts(v.clock.Peek(t)) }

// Coverage returns the share of the span that lies after the first sample, in
// 0..1: below 1 the view does not reach back as far as its span.
func (v *View) Coverage() float64 { return v.coverage(v.clock.PeekNow()) }

// CoverageAt is Coverage as seen at the time t.
func (v *View) CoverageAt(t time.Time) float64 { return v.coverage(v.clock.Peek(t)) }

func (v *View) sample(at time.Duration, total Totals) {
	v.mu.Lock()
	defer v.mu.Unlock()
	total = plausible(total)
	switch {
	case !v.seen:
		v.seen, v.first, v.latest, v.last = true, at, at, total
	case at < v.latest && total.fell(v.last):
		return
	}
	v.latest = max(v.latest, at)
	row := v.counted.row()
	v.ring.Advance(v.ring.Bucket(int64(at)), row[:])
	v.counted = v.counted.plus(total.Minus(v.last))
	v.last = total
}

// mostCounted is the most that a view takes a figure for: the sum of four does not overflow.
const mostCounted = 1 << 60

// plausible returns the totals with each figure between 0 and mostCounted.
func plausible(total Totals) Totals {
	row := Counts(total).row()
	for i, n := range row {
		row[i] = min(max(n, 0), mostCounted)
	}
	c := countsOf(row)
	c.ConsecutiveFailures = total.ConsecutiveFailures
	return Totals(c)
}

func (v *View) counts(at time.Duration) Counts {
	v.mu.Lock()
	defer v.mu.Unlock()
	newest := v.ring.Newest()
	b := max(v.ring.Bucket(int64(at)), newest)
	n := int64(v.shape.Buckets)
	counts := v.since(b-n+1, newest)
	if share := v.shape.oldestShare(v.ring, int64(at), b); share > 0 {
		oldest := v.since(b-n, newest).less(counts)
		counts = counts.plus(oldest.times(share))
	}
	counts.ConsecutiveFailures = v.last.ConsecutiveFailures
	return counts
}

// since returns what was counted since the bucket began. The lock is held.
func (v *View) since(first, newest int64) Counts {
	if first > newest {
		return Counts{}
	}
	var began [viewCols]int64
	for i := range began {
		began[i] = v.ring.Row(first)[i].Load()
	}
	return v.counted.less(countsOf(began))
}

func (v *View) coverage(at time.Duration) float64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.seen || at <= v.first {
		return 0
	}
	return min(1, float64(at-v.first)/float64(v.shape.Span))
}
