package window

import (
	"time"

	"github.com/weir-go/weir/internal/clock"
	"github.com/weir-go/weir/internal/tally"
)

// Calls is a moving window over the outcomes of calls, with their lifetime totals. It covers the
// last span of time, or the last so many calls.
//
// A window with a name is a [stat.Source]. All methods may be called from any number of goroutines.
// No call is ever lost. A call counts when it ends, however long it took.
//
// In a window over time, Record and Refuse cost one clock reading and one atomic add. A slow call
// costs one more atomic add, and Latency two more. The first call of each bucket, and of each
// second, takes a lock to move the window on. Readers never write and take no lock. A reading
// covers the last Buckets buckets, including the current one: never more than the span. The window
// takes about 500 bytes, and up to 56 bytes per bucket, as buckets get calls. From the
// first moment at which two goroutines record at once, it takes up to 4 kB more, for counters
// striped over cache lines.
//
// In a window over the last calls, each method takes a lock for a moment. The window takes about
// 700 bytes, and 48 bytes per call. Ignored and refused calls count from the oldest call in the
// window on. The zero value does not work: use NewCalls.
type Calls struct {
	clock   clock.Clock
	tally   *tally.Calls
	metrics *callsMetrics // nil without a name
}

// NewCalls returns an empty window that uses the real clock. It panics with the error of c.Validate
// if there is one.
func NewCalls(c CallsConfig) *Calls { return NewCallsAt(c, time.Now()) }

// NewCallsAt is like [NewCalls], for a window that begins at t0 and uses the times given to the At
// methods.
func NewCallsAt(c CallsConfig, t0 time.Time) *Calls {
	c = c.mustBeValid()
	return &Calls{clock: clock.Clock{Epoch: t0}, tally: c.newTally(), metrics: newCallsMetrics(c, t0)}
}

// Record counts a call that ended now, after the given duration. The duration matters only if
// CallsConfig.Slow or Latency is set. An unknown outcome counts as Ignored.
func (c *Calls) Record(o Outcome, took time.Duration) {
	c.tally.Record(c.now(), counted(o), took)
}

// RecordAt is [Calls.Record] for a call that ended at the time t. A time before the newest bucket
// counts into that bucket.
func (c *Calls) RecordAt(t time.Time, o Outcome, took time.Duration) {
	c.tally.Record(c.offsetOfCall(t), counted(o), took)
}

// counted returns the outcome as a tally counts it.
func counted(o Outcome) tally.Outcome {
	if o == Overloaded {
		o = Failure
	}
	return tally.Outcome(o)
}

// Refuse counts a refused call.
func (c *Calls) Refuse() { c.tally.Refuse(c.now()) }

// offsetOfCall returns the offset of t, and counts the call as late if t is before the newest
// bucket.
func (c *Calls) offsetOfCall(t time.Time) time.Duration {
	at := c.inClock(c.clock.At(t), clock.GivenTolerance)
	if c.metrics != nil && c.metrics.config.Last == 0 && at < c.tally.NewestBucket() {
		c.metrics.lateCalls.Add(1)
	}
	return at
}

// Counts returns the calls of the last span.
func (c *Calls) Counts() Counts { return c.counts(c.peekNow()) }

// CountsAt is [Calls.Counts] at the time t.
func (c *Calls) CountsAt(t time.Time) Counts { return c.counts(c.peekAt(t)) }

func (c *Calls) counts(at time.Duration) Counts { return Counts(c.tally.Window(at, &tally.Counts{})) }

// Totals returns the calls of the whole lifetime.
func (c *Calls) Totals() Totals { return Totals(c.tally.Totals()) }

// Latency returns the durations of the calls of the last span, if CallsConfig.Latency is set. The
// window of these durations moves in steps of a twelfth of the span, or of a bucket if a bucket is
// longer.
func (c *Calls) Latency() Latency { return Latency(c.tally.Latency(c.peekNow())) }

// LatencyAt is [Calls.Latency] at the time t.
func (c *Calls) LatencyAt(t time.Time) Latency { return Latency(c.tally.Latency(c.peekAt(t))) }

// LifetimeLatency returns the durations of all calls, if CallsConfig.Latency is set.
func (c *Calls) LifetimeLatency() Latency { return Latency(c.tally.LifetimeLatency()) }

func (c *Calls) now() time.Duration     { return c.inClock(c.clock.Now(), clock.ReadTolerance) }
func (c *Calls) peekNow() time.Duration { return c.inClock(c.clock.PeekNow(), clock.ReadTolerance) }
func (c *Calls) peekAt(t time.Time) time.Duration {
	return c.inClock(c.clock.Peek(t), clock.GivenTolerance)
}

// inClock returns the offset. If its clock is a new one, it empties the window first: see
// clock.IsNew.
func (c *Calls) inClock(at, tolerance time.Duration) time.Duration {
	if latest := c.tally.Latest(); at < latest-tolerance && c.clock.IsNew(at, latest, tolerance) {
		c.tally.Restart(at)
		if c.metrics != nil {
			c.metrics.began.Store(int64(at))
		}
	}
	return at
}
