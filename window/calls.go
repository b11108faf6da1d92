package window

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/weir-go/weir/internal/tally"
)

// CallsConfig is the shape of a window over calls.
type CallsConfig struct {
	// Span is the length of the window, as in Config. Default 10 s.
	Span time.Duration
	// Buckets divide the span, as in Config. Default 10.
	Buckets int
	// Slow is the time above which a call counts as slow; 0, the default, counts
	// none so.
	Slow time.Duration
}

// Validate returns an error that names every field that is out of bounds, and nil
// where there is none.
func (c CallsConfig) Validate() error {
	err := c.shape().Validate()
	if c.Slow < 0 {
		err = errors.Join(err, fmt.Errorf("window: Slow is %v, must be at least 0", c.Slow))
	}
	return err
}

func (c CallsConfig) shape() Config { return Config{Span: c.Span, Buckets: c.Buckets} }

// Calls is a bucketed moving window over the outcomes of calls, with their
// lifetime totals.
//
// All methods may be called from any number of goroutines. Record and Refuse cost
// one reading of the clock and one atomic add, two for a slow call; the first of
// each bucket takes a lock to roll the window on. No call is ever lost, and a
// call counts when it ends, however long it took. Readers never write and take
// no lock.
//
// Readings are of the last N buckets with the current one: never more than the
// span. A window of N buckets takes about 48 bytes for each power of two from N+2
// on, and 400 bytes beside.
type Calls struct {
	epoch time.Time
	shape Config
	tally *tally.Calls
}

// NewCalls returns an empty window that lives on the real clock. It panics with
// the error of c.Validate if there is one.
func NewCalls(c CallsConfig) *Calls { return NewCallsAt(c, time.Now()) }

// NewCallsAt is NewCalls for a window that begins at t0 and lives on the times
// given to the At verbs.
func NewCallsAt(c CallsConfig, t0 time.Time) *Calls {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	shape := c.shape().must()
	slow := c.Slow
	if slow == 0 {
		slow = math.MaxInt64
	}
	return &Calls{epoch: t0, shape: shape, tally: tally.New(shape.width(), shape.Buckets, slow)}
}

// Record counts a call that ended now and took so long; took matters for slow
// calls alone. An outcome that is none of the three counts as Ignored.
func (c *Calls) Record(o Outcome, took time.Duration) {
	c.tally.Record(time.Since(c.epoch), tally.Verdict(o), took)
}

// RecordAt is Record for a call that ended at the time t. A time before the
// newest bucket counts into that one.
func (c *Calls) RecordAt(t time.Time, o Outcome, took time.Duration) {
	c.tally.Record(t.Sub(c.epoch), tally.Verdict(o), took)
}

// Refuse counts a call that was not let through.
func (c *Calls) Refuse() { c.tally.Refuse(time.Since(c.epoch)) }

// RefuseAt is Refuse at the time t.
func (c *Calls) RefuseAt(t time.Time) { c.tally.Refuse(t.Sub(c.epoch)) }

// Counts returns the calls of the last span.
func (c *Calls) Counts() Counts { return c.since(time.Since(c.epoch), Totals{}) }

// CountsAt is Counts as seen at the time t.
func (c *Calls) CountsAt(t time.Time) Counts { return c.since(t.Sub(c.epoch), Totals{}) }

// Since returns the calls of the last span that were counted after the given
// totals were read: the window as it would be had it been cleared at that
// moment, for one reader and at no cost to the others.
func (c *Calls) Since(baseline Totals) Counts { return c.since(time.Since(c.epoch), baseline) }

// SinceAt is Since as seen at the time t.
func (c *Calls) SinceAt(t time.Time, baseline Totals) Counts {
	return c.since(t.Sub(c.epoch), baseline)
}

// Totals returns the calls of the whole lifetime.
func (c *Calls) Totals() Totals { return Totals(c.tally.Totals()) }

// Span returns the length of the window.
func (c *Calls) Span() time.Duration { return c.shape.Span }

func (c *Calls) since(at time.Duration, baseline Totals) Counts {
	return Counts(c.tally.Window(at, tally.Counts(baseline)))
}
