package fleet

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/window"
)

// counted is anything that counts its calls.
type totaler interface{ Totals() window.Totals }

// Calls is a window of the calls of all nodes of a fleet. Each node counts its own calls in its own
// memory, and knows what all of them have counted.
//
//	shared := fleet.NewCalls(link, "payments", fleet.CallsConfig{})
//	payments := breaker.New("payments", breaker.Config{
//		SharedCounts: shared.Counts,
//		OnChange: func(breaker.Change) { shared.Forget() },
//	})
//	shared.Follow(payments)
//	go shared.Run(ctx)
//
// A node counts the calls of what it Follows. Run takes them up twice in an interval, and tells Redis in one round trip what
// is new; the answer is the window of the whole fleet. So a call counts for the other
// nodes at most an interval and a round trip after it ended, and for its own node
// at once. Nothing but Run asks Redis.
//
// A call counts as of the moment when it was taken up, by the server's clock, however
// long it then takes to arrive: in its bucket of the window if that is still there.
// One that comes too late for the window is not counted with the others, so that
// old news neither trips a breaker nor fires an alert; the metric weir.window.events.late
// counts it.
//
// Each call is counted once at most, though a flush may have to be sent many times: it
// has a number that is kept beside the counts. Only where the server forgets a flush
// before the node has its answer is it taken again: nodes that had learnt of it have it
// twice in their Totals, and once in their Counts. Lost are
//
//   - with a process that is killed: what it had not flushed yet,
//   - with a server that forgets: what it had been told,
//   - with a failover: what the replica had not been told,
//   - a flush of which it is not known for more than an hour whether it arrived.
//
// While Redis is unavailable a node goes on by itself: what it knew of the others ages out of
// the window, and its own calls count on. They wait until Redis is back.
//
// All methods may be called from any number of goroutines. A Calls takes less than 5 kB. In
// Redis a window takes one key of about 50 bytes for each bucket and 80 for each node (130 beyond 512 of them),
// and a flush some 60 µs, however many nodes there are. The key, and the trace of a node, last
// twice Span and two hours longer than the latest call; each new node finds some of the traces that
// are older.
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
	sources    []source
	flushes    int64         // round trips that Redis answered
	failed     int64         // round trips that failed
	lastErr    error         // of the latest round trip
	answeredAt time.Duration // when the latest flush was sent that was answered
}

// NewCalls makes a window that all nodes share which give it the same name, Span and
// Buckets. Nothing is read yet: Run does that. NewCalls panics with the error of
// c.Validate if there is one, where the name is empty or has braces, and where there
// is no link.
func NewCalls(l *Link, name string, c CallsConfig) *Calls {
	c = c.mustValidate(l, name)
	calls := &Calls{
		name: name, link: l, config: c, key: c.key(l.prefix, name), epoch: time.Now(), series: newCallsSeries(name),
		state: newNodeState(c),
	}
	calls.publish(0)
	return calls
}

// Follow counts the calls of these sources as this node's, from now on: breakers, gates, a
// window.Calls for calls that none of these guards, and all else whose Totals only grow and may be read at any time. They are read at each call of
// Counts. What is followed twice counts twice.
func (c *Calls) Follow(sources ...interface{ Totals() window.Totals }) {
	var more []source
	for _, s := range sources {
		more = append(more, source{s, callCountsOf(window.Counts(s.Totals()))})
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sources = slices.Concat(c.sources, more) // outlooks share the old one
	c.publish(c.now())
}

// Counts returns the calls of the whole fleet in the window, since the latest Forget:
// those that Redis knew of when Run last asked, and all of this node's, each once. It
// takes no lock and asks nobody. ConsecutiveFailures is 0. It fits
// breaker.Config.SharedCounts, which a closed breaker asks at each result of its own: so one
// with no calls stays closed until it has some.
func (c *Calls) Counts() window.Counts { return c.current.Load().windowAt(c.now()).windowCounts() }

// Totals returns the calls of the whole fleet since this node began: all of its own,
// and those of the others that it has learnt of since its first answer from Redis.
// Every figure only grows. After a gap longer than the window it goes on with what is
// in the window: old news is left out. It takes no lock. ConsecutiveFailures is 0.
func (c *Calls) Totals() window.Totals {
	o := c.current.Load()
	return window.Totals(o.ownCalls().plus(o.others).windowCounts())
}

// Forget leaves the calls that have ended so far, on whichever node, out of this
// node's Counts. Other nodes, and Totals, do not notice. As calls are known by buckets
// and intervals alone, what ends within an interval and a bucket after it may be left
// out too.
//
// A breaker judges anew when it has closed, so evidence from before must not count:
// call Forget from its OnChange.
func (c *Calls) Forget() {
	own := c.current.Load().ownCalls()
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	c.state.capture(now, own)
	c.state.forget(now)
	c.publish(now)
}

// Err returns the error of the latest exchange with the fleet, and nil if Redis answered it.
func (c *Calls) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lastErr
}

func (c *Calls) now() time.Duration { return time.Since(c.epoch) }

// publish makes the outlook anew. The lock is held.
func (c *Calls) publish(now time.Duration) {
	c.current.Store(c.state.snapshot(now, c.sources))
}
