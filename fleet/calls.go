package fleet

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/window"
)

// Calls is a window of the calls of all nodes of a fleet. Each node counts its own calls in memory,
// and learns through Redis what all nodes have counted.
//
//	shared := fleet.NewCalls(link, "payments", fleet.CallsConfig{})
//	payments := breaker.New("payments", breaker.Config{
//		SharedCounts: shared.Counts,
//		OnChange: func(breaker.Change) { shared.Forget() },
//	})
//	shared.Follow(payments)
//	go shared.Run(ctx)
//
// A node counts the calls of the sources it follows. Run collects them twice per interval and sends
// the new ones to Redis in one round trip, whose reply is the window of the whole fleet. A call
// therefore counts at once on its own node, and on other nodes after at most an interval and a
// round trip. Only Run asks Redis.
//
// A call is dated by the time when Run collected it, in the server's clock, however long it takes
// to arrive in Redis. If that time is out of the window when the call arrives, the other nodes do
// not count it. Old calls therefore neither trip a breaker nor fire an alert. The metric
// weir.window.late_events counts such calls.
//
// No call is counted twice, even if a flush has to be sent many times: each flush has a number that
// is stored with the counts. There is one exception. If the server forgets a flush before the node
// has received the reply, the node sends the flush again. Nodes that had already learned of its
// calls then count them twice in Totals, but once in Counts. Some calls can be lost:
//
//   - If a process is killed, the calls it has not flushed.
//   - If the server loses its data, the calls it had received.
//   - On a failover, the calls the replica had not received.
//   - If it is unknown for more than an hour whether a flush arrived, the calls of that flush.
//
// While Redis is unavailable, the known calls of other nodes leave a node's window as they become
// too old. The node's own calls still count, and are sent when Redis is back.
//
// All methods are safe for concurrent use. A Calls takes less than 5 kB. In Redis, a window is one
// key of about 50 bytes per bucket and 80 bytes per node, or 130 if there are more than 512 nodes.
// A flush takes Redis about 60µs, however many nodes there are. The key, and the entry of a node,
// expire twice Span plus two hours after the latest call. The first flush of a new node removes
// some of the expired entries. The zero value does not work: use NewCalls.
type Calls struct {
	name    string
	key     string
	link    *Link
	config  CallsConfig
	epoch   time.Time
	series  callsSeries
	current atomic.Pointer[snapshot]
	running sync.Mutex // held by Run

	mu         sync.Mutex
	state      nodeState
	sources    []callSource
	flushes    int64         // round trips that Redis answered
	failed     int64         // round trips that failed
	lastErr    error         // of the latest round trip
	answeredAt time.Duration // when the latest answered flush was sent
}

// NewCalls returns a window that is shared by all nodes that use the same name, Span and Buckets.
// It asks Redis nothing: Run does that. NewCalls panics with the error of c.Validate if there is
// one, and if the link is nil or the name is empty or contains braces.
func NewCalls(l *Link, name string, c CallsConfig) *Calls {
	c = c.mustValidate(l, name)
	calls := &Calls{
		name: name, link: l, config: c, key: c.key(l.prefix, name), epoch: time.Now(), series: newCallsSeries(name),
		state: newNodeState(c),
	}
	calls.publish(0)
	return calls
}

// Follow counts the future calls of the sources as calls of this node. A source is a breaker, a
// gate, a window.Calls for calls that no breaker or gate guards, or anything else whose Totals only
// grow and may be read at any time. Each call of Counts reads the Totals of all sources. A source
// that is followed twice counts twice.
func (c *Calls) Follow(sources ...interface{ Totals() window.Totals }) {
	var added []callSource
	for _, s := range sources {
		added = append(added, callSource{s, callCountsOf(window.Counts(s.Totals()))})
	}
	own := c.current.Load().ownCalls()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sources = slices.Concat(c.sources, added) // a copy: snapshots share the old slice
	c.publish(c.readClock(own))
}

// Counts returns the calls of the whole fleet in the window since the latest Forget: the calls that
// Redis reported to Run, and all calls of this node. Each call is counted once. It takes no lock
// and asks Redis nothing. ConsecutiveFailures is 0. If the clock is another one than before, as in
// a testing/synctest bubble, calls that ended before leave the window.
//
// Use it as breaker.Config.SharedCounts. A closed breaker reads the counts only after each of its
// own calls, so a breaker without calls stays closed until it has some.
func (c *Calls) Counts() window.Counts {
	s, now := c.latest()
	return s.windowAt(now).windowCounts()
}

// Totals returns the calls of the whole fleet since this node began: all of its own, and those of
// other nodes that it has learned of since its first reply from Redis. No value ever decreases. If
// more time than the length of the window passes between two replies, only the calls in the window
// are added. Totals takes no lock. ConsecutiveFailures is 0.
func (c *Calls) Totals() window.Totals {
	s := c.current.Load()
	return window.Totals(s.ownCalls().plus(s.others).windowCounts())
}

// Forget excludes calls that have ended so far, on any node, from this node's Counts. Totals and
// other nodes are not affected. The time of a call is known only to the bucket and the interval.
// Calls that end up to one bucket and one interval later may therefore be excluded too.
//
// Call Forget in the OnChange callback of a breaker. Without it, a breaker that has just closed
// would open again on old failures.
func (c *Calls) Forget() {
	own := c.current.Load().ownCalls()
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.readClock(own)
	c.state.capture(now, own)
	c.state.forget(now)
	c.publish(now)
}

// Err returns the error of the latest exchange with Redis, or nil if Redis answered it.
func (c *Calls) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lastErr
}

func (c *Calls) now() time.Duration { return time.Since(c.epoch) }

// latest returns the current snapshot and the time.
func (c *Calls) latest() (*snapshot, time.Duration) {
	s := c.current.Load()
	now := c.now() // after the snapshot was loaded
	if now >= s.at {
		return s, now
	}
	own := s.ownCalls()
	c.mu.Lock()
	defer c.mu.Unlock()
	now = c.readClock(own)
	c.publish(now)
	return c.current.Load(), now
}

// readClock returns the time. If the time of the current snapshot has not come yet, that time is of
// another clock, such as that of a testing/synctest bubble. Then own, the calls of this node, and
// all other calls so far leave the window, and the totals stay. The caller holds c.mu.
func (c *Calls) readClock(own callCounts) time.Duration {
	now := c.now()
	if now < c.current.Load().at {
		c.state.capture(now, own)
		c.state.restart(now)
		c.answeredAt = now
	}
	return now
}

// publish replaces the current snapshot. The caller holds c.mu.
func (c *Calls) publish(now time.Duration) {
	c.current.Store(c.state.snapshot(now, c.sources))
}

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

type callsSeries struct {
	events                             [4]*stat.Series // success, failure, ignored, refused
	late, ratio, size, length          *stat.Series
	flushSuccesses, flushFailures, lag *stat.Series
}

func newCallsSeries(name string) callsSeries {
	s := callsSeries{
		late: windowEventsLate.Series(name), ratio: windowErrorRatio.Series(name),
		size: windowSize.Series(name), length: windowLength.Series(name),
		flushSuccesses: windowFlushes.Series(name, "success"), flushFailures: windowFlushes.Series(name, "failure"),
		lag: windowLag.Series(name),
	}
	for i, outcome := range [4]string{"success", "failure", "ignored", "refused"} {
		s.events[i] = windowEvents.Series(name, outcome)
	}
	return s
}

// Observe yields the metrics of the window: see [stat.Source]. The events are those of this node
// only, so that the sum over all nodes counts each event once. Size and error ratio are those of
// the fleet. There is no error ratio if there are no calls.
func (c *Calls) Observe(yield func(*stat.Series, float64) bool) {
	s, now := c.latest()
	c.mu.Lock()
	late, flushes, failed, lag := c.state.late, c.flushes, c.failed, max(now-c.answeredAt, 0)
	c.mu.Unlock()
	own, fleet := s.ownCalls(), s.windowAt(now).windowCounts()
	for i, n := range [4]int64{own[0], own[1], own[4], own[5]} {
		if !yield(c.series.events[i], float64(n)) {
			return
		}
	}
	_ = yield(c.series.late, float64(late)) &&
		yield(c.series.size, float64(fleet.Calls())) &&
		(fleet.Calls() == 0 || yield(c.series.ratio, fleet.FailureRate())) &&
		yield(c.series.length, c.config.Span.Seconds()) &&
		yield(c.series.flushSuccesses, float64(flushes)) &&
		yield(c.series.flushFailures, float64(failed)) &&
		yield(c.series.lag, lag.Seconds())
}
