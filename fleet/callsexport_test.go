package fleet

import (
	"context"
	"time"

	"github.com/weir-go/weir/window"
)

// CallsNode is a Calls without clock and network. It does one step at a time, at offsets from the
// node's epoch.
type CallsNode struct {
	config CallsConfig
	key    string
	link   *Link
	state  nodeState
	own    callCounts
}

// NewCallsNode returns a node.
func NewCallsNode(l *Link, name string, c CallsConfig) *CallsNode {
	c = c.mustValidate(l, name)
	return &CallsNode{config: c, key: c.key(l.prefix, name), link: l, state: newNodeState(c)}
}

// Count adds calls.
func (n *CallsNode) Count(c window.Counts) { n.own = n.own.plus(callCountsOf(c)) }

// Capture captures the calls counted so far, and returns the time by which they are dated.
func (n *CallsNode) Capture(now time.Duration) time.Duration {
	at := min(now, n.state.capturedAt+n.state.interval)
	n.state.capture(now, n.own)
	return at
}

// CaptureStale captures counts that were read some time ago.
func (n *CallsNode) CaptureStale(now time.Duration, c window.Counts) {
	n.state.capture(now, callCountsOf(c))
}

// Delta holds the counts of a node at one moment.
type Delta struct {
	At    time.Duration
	Calls window.Counts
}

// Message is a flush that is being sent.
type Message struct {
	Number int64
	Deltas []Delta
	key    string
	link   *Link
	args   []any
	sent   time.Duration
}

// Send returns the flush to send.
func (n *CallsNode) Send(now time.Duration) Message {
	m := Message{key: n.key, link: n.link, args: n.state.scriptArgs(n.config, now, ""), sent: now, Number: n.state.number}
	for _, d := range n.state.inFlight {
		m.Deltas = append(m.Deltas, Delta{d.at, d.windowCounts()})
	}
	return m
}

// Deliver runs the script at the given time of the server, since 1970, and returns
// its reply.
func (m Message) Deliver(ctx context.Context, at time.Duration) ([]int64, error) {
	m.args[2] = microsText(at)
	return m.link.eval(ctx, callsScript, []string{m.key}, m.args)
}

// Receive processes the reply to the message that was sent last.
func (n *CallsNode) Receive(m Message, reply []int64) { n.state.receive(parseReply(reply, m.sent)) }

// Window returns what Calls.Counts would return.
func (n *CallsNode) Window(now time.Duration) window.Counts {
	return n.state.snapshot(now, nil).windowAt(now).windowCounts()
}

// Totals returns what Calls.Totals would return.
func (n *CallsNode) Totals() window.Totals {
	return window.Totals(n.own.plus(n.state.others).windowCounts())
}

// Forget does what Calls.Forget does.
func (n *CallsNode) Forget(now time.Duration) { n.state.forget(now) }

// Late returns how many calls of this node arrived too late for the window.
func (n *CallsNode) Late() int64 { return n.state.late }

// Lost returns the calls in flushes that were given up.
func (n *CallsNode) Lost() window.Counts { return n.state.lost.windowCounts() }

// Fleet returns the total of all nodes in the latest reply of Redis.
func (n *CallsNode) Fleet() window.Counts { return n.state.latest.total.windowCounts() }

// Key returns the Redis key of the window.
func (c *Calls) Key() string { return c.key }

// Flushes returns how many round trips Redis has answered.
func (c *Calls) Flushes() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.flushes
}

// Late returns how many calls of this node arrived too late for the window.
func (c *Calls) Late() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.late
}

// FailedFlushes returns how many round trips have failed.
func (c *Calls) FailedFlushes() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}

// Lost returns the calls of this node in flushes that were given up.
func (c *Calls) Lost() window.Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.lost.windowCounts()
}

// Lag returns the metric weir.window.lag: the age of the counts of the other nodes.
func (c *Calls) Lag() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now() - c.answeredAt
}
