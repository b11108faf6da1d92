package window

import (
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/clock"
	"github.com/weir-go/weir/internal/ring"
)

// Counter is a bucketed moving window over one sum: how much was added in the
// last span of time.
//
// All methods may be called from any number of goroutines. Add is wait-free but
// for the first one of each bucket, which takes a lock to roll the window on; no
// addition is ever lost. Readers never write: what has aged out is gone at the
// next reading, whether anybody adds or not.
//
// Sums wrap around, as int64 does. Sum is therefore right for as long as what lies in
// the window fits an int64, however much was added before.
type Counter struct {
	clock clock.Clock
	shape Config
	ring  *ring.Ring
	mu    sync.Mutex // held to roll
	_     [64]byte   // what every call reads stays off the line that every call writes
	total atomic.Int64
	_     [56]byte
}

// NewCounter returns an empty window that lives on the real clock. It panics with
// the error of c.Validate if there is one.
func NewCounter(c Config) *Counter { return NewCounterAt(c, time.Now()) }

// NewCounterAt is NewCounter for a window that begins at t0 and lives on the
// times given to the At verbs.
func NewCounterAt(c Config, t0 time.Time) *Counter {
	c = c.must()
	return &Counter{clock: clock.Clock{Epoch: t0}, shape: c, ring: ring.New(int64(c.width()), c.Buckets, 1)}
}

// Add adds n, which may be negative, to the sum.
func (c *Counter) Add(n int64) { c.add(c.clock.Now(), n) }

// AddAt is Add at the time t. A time before the newest bucket adds to that one.
func (c *Counter) AddAt(t time.Time, n int64) { c.add(c.clock.At(t), n) }

// Sum returns what was added in the last Config.Span, by the rule of Config.Edge.
func (c *Counter) Sum() int64 { return c.sum(c.clock.PeekNow()) }

// SumAt is Sum as seen at the time t.
func (c *Counter) SumAt(t time.Time) int64 { return c.sum(c.clock.Peek(t)) }

// Rate returns the sum a second over Config.Span.
func (c *Counter) Rate() float64 { return float64(c.Sum()) / c.shape.Span.Seconds() }

// RateAt is Rate as seen at the time t.
func (c *Counter) RateAt(t time.Time) float64 { return float64(c.SumAt(t)) / c.shape.Span.Seconds() }

// Buckets yields the buckets of the window, the oldest first, each with the time at
// which it begins: for drawing. A bucket that is added to meanwhile shows the one or
// the other sum; when the window is rolled on meanwhile, buckets that have left it
// show 0.
func (c *Counter) Buckets() iter.Seq2[time.Time, int64] { return c.buckets(c.clock.PeekNow()) }

// BucketsAt is Buckets as seen at the time t.
func (c *Counter) BucketsAt(t time.Time) iter.Seq2[time.Time, int64] {
	return c.buckets(c.clock.Peek(t))
}

// Total returns what was added in the counter's whole life. It wraps around.
func (c *Counter) Total() int64 { return c.total.Load() }

func (c *Counter) add(at time.Duration, n int64) {
	if c.ring.Due(int64(at)) {
		c.roll(c.ring.Bucket(int64(at)))
	}
	c.total.Add(n)
}

func (c *Counter) roll(b int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ring.Advance(b, []int64{c.Total()})
}

func (c *Counter) sum(at time.Duration) int64 {
	buckets := int64(c.shape.Buckets)
	for {
		newest := c.ring.Newest()
		b := max(c.ring.Bucket(int64(at)), newest)
		sum := c.since(b-buckets+1, newest)
		if share := c.shape.oldestShare(c.ring, int64(at), b); share > 0 {
			sum += partOf(c.since(b-buckets, newest)-sum, share)
		}
		if c.ring.Newest() == newest {
			return sum
		}
	}
}

func (c *Counter) buckets(at time.Duration) iter.Seq2[time.Time, int64] {
	return func(yield func(time.Time, int64) bool) {
		last := max(c.ring.Bucket(int64(at)), c.ring.Newest())
		for b := last - int64(c.shape.Buckets) + 1; b <= last; b++ {
			if !yield(c.clock.TimeOf(time.Duration(c.ring.Start(b))), c.bucket(b)) {
				return
			}
		}
	}
}

// bucket returns what was added in bucket b, and 0 if it is too old to tell.
func (c *Counter) bucket(b int64) int64 {
	for {
		newest := c.ring.Newest()
		if b <= newest-int64(c.shape.Buckets) {
			return 0
		}
		sum := c.since(b, newest)
		if b < newest {
			sum = c.ring.Row(b + 1)[0].Load() - c.ring.Row(b)[0].Load()
		}
		if c.ring.Newest() == newest {
			return sum
		}
	}
}

// since returns what was added since the bucket began. It holds if the newest
// bucket is the same afterwards.
func (c *Counter) since(first, newest int64) int64 {
	if first > newest {
		return 0
	}
	began := c.ring.Row(first)[0].Load()
	return c.Total() - began
}
