package window

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/weir-go/weir/internal/clock"
	"github.com/weir-go/weir/internal/tally"
)

// CallsConfig configures a window over calls. The zero value is a window over 10 s in 10 buckets.
type CallsConfig struct {
	// Name is the name under which exporters show the window. Default none: nothing is shown.
	Name string
	// Span is the length of the window, as in Config. Default 10 s.
	Span time.Duration
	// Buckets divide the span, as in Config. Default 10.
	Buckets int
	// Last makes it a window over the last so many calls with a verdict, from 1 to
	// 100,000, instead of over time. Span and Buckets must then be 0. Default 0.
	Last int
	// Slow is the time above which a call counts as slow; 0, the default, counts
	// none so.
	Slow time.Duration
	// Latency keeps a histogram of how long calls take, for windows over time. It
	// takes 36 kB from the first call on. Default off.
	Latency bool
}

// maxLast is the longest window over calls.
const maxLast = 100_000

// Validate returns an error that names every field that is out of bounds, and nil
// where there is none.
func (c CallsConfig) Validate() error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf("window: "+format, args...)) }
	switch {
	case c.Last < 0 || c.Last > maxLast:
		fault("Last is %d, must lie between 1 and %d, or be 0 for a window over time", c.Last, maxLast)
	case c.Last == 0:
		errs = append(errs, c.shape().Validate())
	default:
		if c.Span != 0 || c.Buckets != 0 {
			fault("Span is %v and Buckets is %d, must both be 0 where Last is set", c.Span, c.Buckets)
		}
		if c.Latency {
			fault("Latency is true, must be false where Last is set")
		}
	}
	if c.Slow < 0 {
		fault("Slow is %v, must be at least 0", c.Slow)
	}
	return errors.Join(errs...)
}

func (c CallsConfig) orDefault() CallsConfig {
	if c.Last == 0 {
		shape := c.shape().must()
		c.Span, c.Buckets = shape.Span, shape.Buckets
	}
	return c
}

func (c CallsConfig) shape() Config { return Config{Span: c.Span, Buckets: c.Buckets} }

// tally makes what counts. The config is valid.
func (c CallsConfig) tally() *tally.Calls {
	slow := c.Slow
	if slow == 0 {
		slow = math.MaxInt64
	}
	if c.Last > 0 {
		return tally.NewLast(c.Last, slow)
	}
	shape := c.shape().must()
	t := tally.New(shape.width(), shape.Buckets, slow)
	if c.Latency {
		t.TrackLatency()
	}
	return t
}

// Calls is a moving window over the outcomes of calls, with their lifetime totals:
// over the last span of time, in buckets, or over the last N calls.
//
// A window with a name is a [stat.Source]. All methods may be called from any number of goroutines.
// No call is ever lost, and a call counts when it ends, however long it took.
//
// Over time, Record and Refuse cost one reading of the clock and one atomic add,
// two for a slow call and two more with Latency; the first call of each bucket,
// and of each second, takes a lock to roll the window on. Readers never write and
// take no lock. Readings are of the last N buckets with the current one: never more
// than the span. A window takes about 500 bytes, and 56 bytes for each of its buckets and
// two more. Where several processors
// record millions of calls a second each, it takes 2 kB more, and up to 320 bytes for
// each processor, for cells in which they count successes without being in each
// other's way.
//
// Over calls, each method takes a lock for a moment, and the window takes about 700
// bytes and 48 for each call. What was ignored or refused counts from the window's
// oldest call on.
type Calls struct {
	clock clock.Clock
	tally *tally.Calls
	shown *shownCalls // nil without a name
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
	return &Calls{clock: clock.Clock{Epoch: t0}, tally: c.tally(), shown: newShownCalls(c.orDefault(), t0)}
}

// Record counts a call that ended now and took so long; took matters only where
// CallsConfig.Slow or Latency is set. An outcome that is none of the three counts
// as Ignored.
func (c *Calls) Record(o Outcome, took time.Duration) {
	c.tally.Record(c.clock.Now(), tally.Outcome(o), took)
}

// RecordAt is Record for a call that ended at the time t. A time before the
// newest bucket counts into that one.
func (c *Calls) RecordAt(t time.Time, o Outcome, took time.Duration) {
	c.tally.Record(c.offset(t), tally.Outcome(o), took)
}

// Refuse counts a call that was not let through.
func (c *Calls) Refuse() { c.tally.Refuse(c.clock.Now()) }

// RefuseAt is Refuse at the time t.
func (c *Calls) RefuseAt(t time.Time) { c.tally.Refuse(c.offset(t)) }

// offset returns the offset of a call's time. It counts a time before the newest bucket, for the
// exporters.
func (c *Calls) offset(t time.Time) time.Duration {
	at := c.clock.At(t)
	if c.shown != nil && c.shown.shape.Last == 0 && at < c.tally.NewestBucket() {
		c.shown.lateCalls.Add(1)
	}
	return at
}

// Counts returns the calls of the last span.
func (c *Calls) Counts() Counts { return c.counts(c.clock.PeekNow()) }

// CountsAt is Counts as seen at the time t.
func (c *Calls) CountsAt(t time.Time) Counts { return c.counts(c.clock.Peek(t)) }

// Totals returns the calls of the whole lifetime.
func (c *Calls) Totals() Totals { return Totals(c.tally.Totals()) }

// Latency returns how long the calls of the last span took, if CallsConfig.Latency
// is set. Its window moves by a twelfth of the span, or by buckets if they are fewer.
func (c *Calls) Latency() Latency { return Latency(c.tally.Latency(c.clock.PeekNow())) }

// LatencyAt is Latency as seen at the time t.
func (c *Calls) LatencyAt(t time.Time) Latency { return Latency(c.tally.Latency(c.clock.Peek(t))) }

// LifetimeLatency returns how long all calls took, if CallsConfig.Latency is set.
func (c *Calls) LifetimeLatency() Latency { return Latency(c.tally.LifetimeLatency()) }

func (c *Calls) counts(at time.Duration) Counts {
	return Counts(c.tally.Window(at, &tally.Counts{}))
}
