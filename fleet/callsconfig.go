package fleet

import (
	"errors"
	"fmt"
	"time"
)

// CallsConfig is the shape of a window that a fleet shares.
type CallsConfig struct {
	// Span is the length of the window, up to 30 days. It is rounded up to whole
	// microseconds a bucket. Nodes whose Span or Buckets differ share nothing.
	// Default 10 s.
	Span time.Duration
	// Buckets divide the span, from 1 to 500; each lasts from 10 ms to a day. The window
	// moves by one bucket at a time. Default 10.
	Buckets int
	// Interval is the time in which the other nodes know of a call, but for a round trip,
	// from 10 ms to Span: there are two flushes in it. Default a bucket, but at most 1 s.
	Interval time.Duration
}

const (
	minCallsBucket  = 10 * time.Millisecond
	maxCallsBucket  = 24 * time.Hour
	maxCallsBuckets = 500
	maxCallsSpan    = 30 * 24 * time.Hour
)

// Validate returns an error that names every field that is out of bounds, and nil where
// there is none.
func (c CallsConfig) Validate() error {
	d := c.defaults()
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf("fleet: "+format, args...)) }
	switch {
	case d.Buckets < 1 || d.Buckets > maxCallsBuckets:
		fault("Buckets is %d, must lie between 1 and %d", c.Buckets, maxCallsBuckets)
	case d.Span < minCallsBucket || d.Span > maxCallsSpan:
		fault("Span is %v, must lie between %v and %v", c.Span, minCallsBucket, maxCallsSpan)
	case d.width() < minCallsBucket || d.width() > maxCallsBucket:
		fault("Span is %v and Buckets is %d, a bucket must last between %v and %v", d.Span, d.Buckets, minCallsBucket, maxCallsBucket)
	case d.Interval < minCallsBucket || d.Interval > d.Span:
		fault("Interval is %v, must lie between %v and Span, %v", c.Interval, minCallsBucket, d.Span)
	}
	return errors.Join(errs...)
}

// defaults fills in what is zero, and rounds the span.
func (c CallsConfig) defaults() CallsConfig {
	if c.Span == 0 {
		c.Span = 10 * time.Second
	}
	if c.Buckets == 0 {
		c.Buckets = 10
	}
	if c.Buckets > 0 {
		c.Span = c.width() * time.Duration(c.Buckets)
	}
	if c.Interval == 0 && c.Buckets > 0 {
		c.Interval = min(c.width(), time.Second)
	}
	return c
}

// width is the length of a bucket, in whole microseconds.
func (c CallsConfig) width() time.Duration {
	step := time.Duration(c.Buckets) * time.Microsecond
	return (c.Span + step - 1) / step * time.Microsecond
}

// keep is how long Redis remembers a window, or a node, that nobody writes to. A node that
// has not heard for half of it what became of a flush gives that up, so it never sends
// it to a server that has forgotten the flush's number.
func (c CallsConfig) lifetime() time.Duration { return 2*c.Span + 2*time.Hour }

// key is where Redis keeps the window. Windows of other shapes have other keys, for their
// buckets do not fit together.
func (c CallsConfig) key(prefix, name string) string {
	return fmt.Sprintf("%scalls:{%s}:%s/%d", prefix, tag(name), c.Span, c.Buckets)
}

func (c CallsConfig) mustValidate(l *Link, name string) CallsConfig {
	err := errors.Join(validateName(name), c.Validate())
	if l == nil {
		err = errors.Join(errors.New("fleet: the link is nil"), err)
	}
	if err != nil {
		panic(err)
	}
	return c.defaults()
}
