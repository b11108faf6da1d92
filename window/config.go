package window

import (
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir/internal/ring"
)

// Edge selects the buckets that a reading adds up. With N buckets of length B per span, and now
// somewhere inside the current bucket:
//
//	     oldest                           current
//	|.....x.....|...........|...........|.......^ now
//	      └────────── the exact span ───────────┘
//	            └──────────── Recent ───────────┘   covers (N−1)·B to N·B
//	└────────────────────── Strict ─────────────┘   covers N·B to (N+1)·B
//
// Interpolated adds to Recent the share of the oldest bucket that the span still covers, as if that
// bucket had been filled evenly. Its error is at most what the oldest bucket holds.
//
// The zero value, "", means Recent.
type Edge string

// The edges of a window.
const (
	Recent       Edge = "recent"       // N buckets with the current one: never more than the span
	Strict       Edge = "strict"       // N+1 buckets: never less than the span, as limits need
	Interpolated Edge = "interpolated" // Recent and a share of the oldest bucket: the best estimate
)

// The bounds of a Config.
const (
	minSpan        = time.Millisecond
	maxSpan        = 30 * 24 * time.Hour
	maxBuckets     = 100_000
	maxBucketWidth = time.Hour
)

// Config configures a window over time. The zero value is a window over 10s in 10 buckets.
type Config struct {
	// Span is the length of the window, from 1ms to 30 days. It is rounded up to a multiple of
	// Buckets, in nanoseconds. Default 10s.
	Span time.Duration
	// Buckets is the number of buckets in the span, from 1 to 100,000, each at most an hour long.
	// The window moves by one bucket at a time, so more buckets make it smoother. Default 10.
	Buckets int
	// Edge selects the buckets that a reading adds up. Default Recent.
	Edge Edge
}

// Validate returns an error that names every field that is out of bounds, or nil if there is none.
func (c Config) Validate() error {
	var errs []error
	invalid := func(format string, args ...any) { errs = append(errs, fmt.Errorf("window: "+format, args...)) }
	d := c.withDefaults()
	if d.Span < minSpan || d.Span > maxSpan {
		invalid("Span is %v, must lie between %v and %v", c.Span, minSpan, maxSpan)
	}
	if d.Buckets < 1 || d.Buckets > maxBuckets {
		invalid("Buckets is %d, must lie between 1 and %d", c.Buckets, maxBuckets)
	}
	if len(errs) == 0 && d.bucketWidth() > maxBucketWidth {
		invalid("Buckets is %d, must be at least %d for a Span of %v: each bucket is at most %v long",
			d.Buckets, (d.Span+maxBucketWidth-1)/maxBucketWidth, d.Span, maxBucketWidth)
	}
	if d.Edge != Recent && d.Edge != Strict && d.Edge != Interpolated {
		invalid("Edge is %.60q, must be %q, %q or %q", string(c.Edge), Recent, Strict, Interpolated)
	}
	return errors.Join(errs...)
}

func (c Config) withDefaults() Config {
	if c.Span == 0 {
		c.Span = 10 * time.Second
	}
	if c.Buckets == 0 {
		c.Buckets = 10
	}
	if c.Edge == "" {
		c.Edge = Recent
	}
	return c
}

// bucketWidth returns the length of a bucket.
func (c Config) bucketWidth() time.Duration {
	n := time.Duration(c.Buckets)
	return (c.Span + n - 1) / n
}

// mustBeValid returns the config with defaults, and with Span rounded up to whole buckets. It
// panics if the config is not valid.
func (c Config) mustBeValid() Config {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	c = c.withDefaults()
	c.Span = c.bucketWidth() * time.Duration(c.Buckets)
	return c
}

func (c Config) newRing(columns int) *ring.Ring {
	return ring.New(int64(c.bucketWidth()), c.Buckets, columns)
}

// oldestShare returns the share, in 0..1, of the bucket before the last N buckets that a reading
// includes, if bucket b is the current one. For Interpolated, it is the part of that bucket that
// the span still covers.
func (c Config) oldestShare(r *ring.Ring, at, b int64) float64 {
	switch c.Edge {
	case Strict:
		return 1
	case Interpolated:
		return 1 - float64(max(at-r.Start(b), 0))/float64(r.Width())
	default:
		return 0
	}
}
