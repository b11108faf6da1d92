package window

import (
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/clock"
	"github.com/weir-go/weir/internal/ring"
)

// Counter is a moving window over one number: the sum of what was added in the last span of time.
//
// All methods may be called from any number of goroutines. No addition is ever lost. Add is
// wait-free, except that the first one in each bucket takes a lock to move the window on. Readers
// never write: old buckets leave the window with time, even if nothing is added.
//
// Sums wrap around, as int64 does. So Sum is correct as long as the sum of the window fits an
// int64, however much was added before. The zero value does not work: use NewCounter.
type Counter struct {
	clock  clock.Clock
	config Config
	ring   *ring.Ring
	mu     sync.Mutex // held to move the window on
	// fields that every call reads are not on the cache line that every call writes
	_     [64]byte
	total atomic.Int64
	_     [56]byte
}

// NewCounter returns an empty window that uses the real clock. It panics with the error of
// c.Validate if there is one.
func NewCounter(c Config) *Counter { return NewCounterAt(c, time.Now()) }

// NewCounterAt is like [NewCounter], for a window that begins at t0 and uses the times given to the
// At methods.
func NewCounterAt(c Config, t0 time.Time) *Counter {
	c = c.mustBeValid()
	return &Counter{clock: clock.Clock{Epoch: t0}, config: c, ring: c.newRing(1)}
}

// Add adds n to the sum. n may be negative.
func (c *Counter) Add(n int64) { c.add(c.inClock(c.clock.Now(), clock.ReadTolerance), n) }

// AddAt is [Counter.Add] at the time t. A time before the newest bucket adds to that bucket.
func (c *Counter) AddAt(t time.Time, n int64) {
	c.add(c.inClock(c.clock.At(t), clock.GivenTolerance), n)
}

// Sum returns what was added in the last Config.Span, by the rule of Config.Edge.
func (c *Counter) Sum() int64 { return c.sum(c.peekNow()) }

// SumAt is [Counter.Sum] at the time t.
func (c *Counter) SumAt(t time.Time) int64 {
	return c.sum(c.inClock(c.clock.Peek(t), clock.GivenTolerance))
}

// Rate returns Sum divided by Config.Span, per second.
func (c *Counter) Rate() float64 { return float64(c.Sum()) / c.config.Span.Seconds() }

// Buckets yields the sum of each bucket of the window with the time at which the bucket begins, the
// oldest first, for a chart. Each sum is read when it is yielded. If the window moves on meanwhile,
// buckets that have left it are 0.
func (c *Counter) Buckets() iter.Seq2[time.Time, int64] { return c.buckets(c.peekNow()) }

// Total returns the sum of everything that was ever added. It wraps around.
func (c *Counter) Total() int64 { return c.total.Load() }

func (c *Counter) peekNow() time.Duration {
	return c.inClock(c.clock.PeekNow(), clock.ReadTolerance)
}

// inClock returns the offset. If its clock is a new one, it empties the window first: see
// clock.IsNew.
func (c *Counter) inClock(at, tolerance time.Duration) time.Duration {
	if began := time.Duration(c.ring.Began()); at < began-tolerance && c.clock.IsNew(at, began, tolerance) {
		c.restart(at)
	}
	return at
}

// restart empties the window, unless another goroutine has done so.
func (c *Counter) restart(at time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if b := c.ring.Bucket(int64(at)); b < c.ring.Newest() {
		c.ring.Restart(b, []int64{c.Total()})
	}
}

func (c *Counter) add(at time.Duration, n int64) {
	if c.ring.Due(int64(at)) {
		c.moveTo(c.ring.Bucket(int64(at)))
	}
	c.total.Add(n)
}

// moveTo makes b the newest bucket, unless another goroutine has done so.
func (c *Counter) moveTo(b int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ring.Advance(b, []int64{c.Total()})
}

func (c *Counter) sum(at time.Duration) int64 {
	buckets := int64(c.config.Buckets)
	for {
		newest := c.ring.Newest()
		b := max(c.ring.Bucket(int64(at)), newest)
		sum := c.sumFrom(b-buckets+1, newest)
		if share := c.config.oldestShare(c.ring, int64(at), b); share > 0 {
			sum += multiply(c.sumFrom(b-buckets, newest)-sum, share)
		}
		if c.ring.Newest() == newest {
			return sum
		}
	}
}

func (c *Counter) buckets(at time.Duration) iter.Seq2[time.Time, int64] {
	return func(yield func(time.Time, int64) bool) {
		last := max(c.ring.Bucket(int64(at)), c.ring.Newest())
		for b := last - int64(c.config.Buckets) + 1; b <= last; b++ {
			if !yield(c.clock.TimeOf(time.Duration(c.ring.Start(b))), c.bucketSum(b)) {
				return
			}
		}
	}
}

// bucketSum returns what was added in bucket b, or 0 if b has left the window.
func (c *Counter) bucketSum(b int64) int64 {
	for {
		newest := c.ring.Newest()
		if b <= newest-int64(c.config.Buckets) {
			return 0
		}
		sum := c.sumFrom(b, newest)
		if b < newest {
			sum = c.ring.Row(b + 1)[0].Load() - c.ring.Row(b)[0].Load()
		}
		if c.ring.Newest() == newest {
			return sum
		}
	}
}

// sumFrom returns what was added since bucket first began. The result is valid if the newest bucket
// is still the same afterwards.
func (c *Counter) sumFrom(first, newest int64) int64 {
	if first > newest {
		return 0
	}
	start := c.ring.Row(first)[0].Load()
	return c.Total() - start
}
