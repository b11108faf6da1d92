package window

import (
	"sync"
	"time"

	"github.com/weir-go/weir/internal/clock"
	"github.com/weir-go/weir/internal/ring"
)

// View is a moving window over the lifetime totals of something else. It reads them by sampling, so
// a window of minutes or days costs the sampled calls nothing:
//
//	recent := window.NewView(window.Config{Span: 5 * time.Minute, Buckets: 60})
//	for range ticker.C {
//		recent.Sample(payments.Totals())
//		fmt.Println(recent.Counts().FailureRate())
//	}
//
// Everything counted between two samples counts as if it happened at the later one. The view begins
// with the first sample: what was counted earlier is not in it. If any number of the totals falls,
// the totals have started again from 0, and all of the sample is counted, as with Prometheus's
// increase. A number outside 0 to 2⁶⁰ is replaced by the nearer bound.
//
// All methods may be called from any number of goroutines, but one goroutine should take the
// samples: samples must come in the order in which the totals were read, because lower totals look
// like a restart. A sample with lower totals and an earlier time than the latest one is ignored.
// The zero value does not work: use NewView.
type View struct {
	clock  clock.Clock
	config Config

	mu      sync.Mutex // guards what follows
	ring    *ring.Ring
	sampled bool          // there was a sample
	latest  time.Duration // when the latest sample came
	last    Totals        // the latest sample
	counted Counts        // everything counted since the first sample
}

// NewView returns a view without samples that uses the real clock. It panics with the error of
// c.Validate if there is one.
func NewView(c Config) *View { return NewViewAt(c, time.Now()) }

// NewViewAt is like [NewView], for a view that begins at t0 and uses the times given to the At
// methods.
func NewViewAt(c Config, t0 time.Time) *View {
	c = c.mustBeValid()
	return &View{clock: clock.Clock{Epoch: t0}, config: c, ring: c.newRing(sumCount)}
}

// Sample adds a sample: the present totals.
func (v *View) Sample(t Totals) { v.sample(v.clock.Now(), t, clock.ReadTolerance) }

// SampleAt is [View.Sample] at the time t.
func (v *View) SampleAt(t time.Time, totals Totals) {
	v.sample(v.clock.At(t), totals, clock.GivenTolerance)
}

// Counts returns the calls of the last span, as far as they were sampled.
func (v *View) Counts() Counts { return v.counts(v.clock.PeekNow(), clock.ReadTolerance) }

// CountsAt is [View.Counts] at the time t.
func (v *View) CountsAt(t time.Time) Counts {
	return v.counts(v.clock.Peek(t), clock.GivenTolerance)
}

func (v *View) sample(at time.Duration, t Totals, tolerance time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.restartIfNew(at, tolerance)
	t = t.clamped()
	switch {
	case !v.sampled:
		v.sampled, v.latest, v.last = true, at, t
	case at < v.latest && t.restartedAfter(v.last):
		return
	}
	v.latest = max(v.latest, at)
	sums := v.counted.sums()
	v.ring.Advance(v.ring.Bucket(int64(at)), sums[:])
	v.counted = v.counted.plus(t.Minus(v.last))
	v.last = t
}

// restartIfNew makes the next sample the first one if the clock is a new one: see clock.IsNew. The
// lock is held.
func (v *View) restartIfNew(at, tolerance time.Duration) {
	if v.sampled && v.clock.IsNew(at, v.latest, tolerance) {
		v.ring = v.config.newRing(sumCount)
		v.ring.Restart(v.ring.Bucket(int64(at)), make([]int64, sumCount))
		v.sampled, v.latest, v.last, v.counted = false, at, Totals{}, Counts{}
	}
}

// maxSampled bounds the numbers of a sample, so that the sum of four does not overflow.
const maxSampled = 1 << 60

// clamped returns the totals with each number between 0 and maxSampled.
func (t Totals) clamped() Totals {
	sums := Counts(t).sums()
	for i, n := range sums {
		sums[i] = min(max(n, 0), maxSampled)
	}
	c := fromSums(sums)
	c.ConsecutiveFailures = t.ConsecutiveFailures
	return Totals(c)
}

func (v *View) counts(at, tolerance time.Duration) Counts {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.restartIfNew(at, tolerance)
	newest := v.ring.Newest()
	b := max(v.ring.Bucket(int64(at)), newest)
	n := int64(v.config.Buckets)
	counts := v.countsFrom(b-n+1, newest)
	if share := v.config.oldestShare(v.ring, int64(at), b); share > 0 {
		oldest := v.countsFrom(b-n, newest).minus(counts)
		counts = counts.plus(oldest.times(share))
	}
	counts.ConsecutiveFailures = v.last.ConsecutiveFailures
	return counts
}

// countsFrom returns what was counted since bucket first began. The lock is held.
func (v *View) countsFrom(first, newest int64) Counts {
	if first > newest {
		return Counts{}
	}
	var start [sumCount]int64
	for i := range start {
		start[i] = v.ring.Row(first)[i].Load()
	}
	return v.counted.minus(fromSums(start))
}
