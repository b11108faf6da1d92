package fleet

import (
	"errors"
	"fmt"
	"time"
)

// CallsConfig configures a [Calls].
type CallsConfig struct {
	// Span is the length of the window, up to 30 days. It is rounded up so that a bucket has whole
	// microseconds. Nodes with different Span or Buckets share nothing. Default 10s.
	Span time.Duration
	// Buckets is the number of buckets of the window, from 1 to 500. A bucket lasts from 10ms to a
	// day, and the window moves by one bucket at a time. Default 10.
	Buckets int
	// Interval is the time after which other nodes know of a call, not counting a round trip, from
	// 10ms to Span. There are two flushes per interval. A node without calls for a Span flushes
	// only four times per Span, so it knows of calls of other nodes after up to a quarter of Span,
	// or after its own next call and half an interval. Default the length of a bucket, at most 1s.
	Interval time.Duration
}

const (
	minCallsBucket  = 10 * time.Millisecond
	maxCallsBucket  = 24 * time.Hour
	maxCallsBuckets = 500
	maxCallsSpan    = 30 * 24 * time.Hour
)

// Validate returns nil if c is valid, and otherwise an error that names an invalid field.
func (c CallsConfig) Validate() error {
	d := c.defaults()
	switch {
	case d.Buckets < 1 || d.Buckets > maxCallsBuckets:
		return fmt.Errorf("fleet: Buckets is %d, must lie between 1 and %d", c.Buckets, maxCallsBuckets)
	case d.Span < minCallsBucket || d.Span > maxCallsSpan:
		return fmt.Errorf("fleet: Span is %v, must lie between %v and %v", c.Span, minCallsBucket, maxCallsSpan)
	case d.width() < minCallsBucket || d.width() > maxCallsBucket:
		return fmt.Errorf("fleet: Span is %v and Buckets is %d, each bucket must last between %v and %v", d.Span, d.Buckets, minCallsBucket, maxCallsBucket)
	case d.Interval < minCallsBucket || d.Interval > d.Span:
		return fmt.Errorf("fleet: Interval is %v, must lie between %v and Span, %v", c.Interval, minCallsBucket, d.Span)
	}
	return nil
}

// mustValidate returns c with its defaults, or panics.
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

// defaults sets fields that are zero, and rounds Span.
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

// width returns the length of a bucket, in whole microseconds.
func (c CallsConfig) width() time.Duration {
	step := time.Duration(c.Buckets) * time.Microsecond
	return (c.Span + step - 1) / step * time.Microsecond
}

// lifetime returns how long Redis keeps a window, or the entry of a node, after the latest flush. A
// node gives up a flush after half of that time, so it never sends a flush to a server that has
// forgotten the flush's number.
func (c CallsConfig) lifetime() time.Duration { return 2*c.Span + 2*time.Hour }

// idlePeriods returns how many periods of half an Interval pass between two exchanges of a node
// without calls. It learns of the calls of other nodes four times per Span.
func (c CallsConfig) idlePeriods() int64 { return max(int64(c.Span/4/(c.Interval/2)), 1) }

// key returns the Redis key of the window. Windows of different shapes have different keys.
func (c CallsConfig) key(prefix, name string) string {
	return fmt.Sprintf("%scalls:{%s}:%s/%d", prefix, keyTag(name), c.Span, c.Buckets)
}
