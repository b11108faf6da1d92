package window

import (
	"iter"
	"time"

	"github.com/weir-go/weir/internal/latency"
)

const (
	LatencyBuckets = bucketCount
	MaxLast        = maxLast
)

// Bucket is a bucket of a Latency that holds calls.
type Bucket struct {
	Lower, Upper float64 // seconds
	Count        int64
}

// Buckets yields the buckets that hold calls, in ascending order.
func (l Latency) Buckets() iter.Seq[Bucket] {
	return func(yield func(Bucket) bool) {
		for i, n := range l.Counts {
			if n > 0 && !yield(Bucket{latency.Bound(firstBucket + i - 1), latency.Bound(firstBucket + i), n}) {
				return
			}
		}
	}
}

// BucketsAt is Buckets at the time t.
func (c *Counter) BucketsAt(t time.Time) iter.Seq2[time.Time, int64] {
	return c.buckets(c.clock.Peek(t))
}

// Late returns how many calls were older than the newest bucket.
func (c *Calls) Late() int64 { return c.metrics.lateCalls.Load() }

// Span returns the length of the window, rounded up to whole buckets.
func (c *Counter) Span() time.Duration { return c.config.Span }

// Span returns the length of the window, rounded up to whole buckets.
func (v *View) Span() time.Duration { return v.config.Span }
