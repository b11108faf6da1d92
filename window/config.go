package window

import (
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir/internal/ring"
)

// Edge says which buckets a reading of the last span adds up. With buckets of
// length B, a span of N buckets and a moment somewhere inside the current one:
//
//	     oldest                           current
//	|.....x.....|...........|...........|.......^
//	      └────────── the true span ────────────┘
//	            └──────────── Recent ───────────┘   covers (N−1)·B to N·B: never more than the span
//	└────────────────────── Strict ─────────────┘   covers N·B to (N+1)·B: never less than the span
//
// Interpolated is Recent and the share of the oldest bucket that the span still
// covers, as if that bucket had been filled evenly: it is off by at most what
// the oldest bucket holds.
//
// The zero value, "", means Recent.
type Edge string

// The edges of a window.
const (
	Recent       Edge = "recent"       // N buckets including the current one: never more than the span
	Strict       Edge = "strict"       // N+1 buckets: never less than the span; for limits
	Interpolated Edge = "interpolated" // Recent plus a share of the oldest bucket: the best estimate
)

// Bounds of a window's shape.
const (
	minSpan    = time.Millisecond
	maxSpan    = 30 * 24 * time.Hour
	maxBuckets = 100_000
	maxBucket  = time.Hour // the longest bucket
)

// Config is the shape of a window over time.
type Config struct {
	// Span is the length of the window, from 1 ms to 30 days. It is rounded up to
	// a whole number of nanoseconds a bucket. Default 10 s.
	Span time.Duration
	// Buckets divide the span: from 1 to 100,000, none longer than an hour. The
	// window moves by one bucket at a time, so more buckets make it smoother.
	// Default 10.
	Buckets int
	// Edge says what a reading adds up. Default Recent.
	Edge Edge
}

// Validate returns an error that names every field that is out of bounds, and nil
// where there is none.
func (c Config) Validate() error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf("window: "+format, args...)) }
	d := c.orDefault()
	if d.Span < minSpan || d.Span > maxSpan {
		fault("Span is %v, must lie between %v and %v", c.Span, minSpan, maxSpan)
	}
	if d.Buckets < 1 || d.Buckets > maxBuckets {
		fault("Buckets is %d, must lie between 1 and %d", c.Buckets, maxBuckets)
	}
	if len(errs) == 0 && d.width() > maxBucket {
		fault("Buckets is %d, must be at least %d: a bucket of a window of %v would be longer than %v",
			d.Buckets, (d.Span+maxBucket-1)/maxBucket, d.Span, maxBucket)
	}
	if d.Edge != Recent && d.Edge != Strict && d.Edge != Interpolated {
		fault("Edge is %.60q, must be %q, %q or %q", string(c.Edge), Recent, Strict, Interpolated)
	}
	return errors.Join(errs...)
}

func (c Config) orDefault() Config {
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

// width returns the length of a bucket.
func (c Config) width() time.Duration {
	n := time.Duration(c.Buckets)
	return (c.Span + n - 1) / n
}

// must returns the config with its defaults and its span rounded up to whole
// buckets, and panics if it is not valid.
func (c Config) must() Config {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	c = c.orDefault()
	c.Span = c.width() * time.Duration(c.Buckets)
	return c
}

// oldestShare returns how much of the bucket before the last N counts, in 0..1,
// as seen from the offset in bucket b: the true span has moved off that bucket as
// far as the offset lies in b.
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
