package fleet

import (
	"context"
	"time"

	"github.com/weir-go/weir/window"
)

// CallsNode is a node of a fleet without clock and network: what a Calls does, one step at
// a time, at offsets from the node's epoch.
type CallsNode struct {
	config CallsConfig
	key    string
	link   *Link
	state  nodeState
	own    callCounts
}

// NewCallsNode makes a node.
func NewCallsNode(l *Link, name string, c CallsConfig) *CallsNode {
	c = c.mustValidate(l, name)
	return &CallsNode{config: c, key: c.key(l.prefix, name), link: l, state: newNodeState(c)}
}

// Count counts calls.
func (n *CallsNode) Count(c window.Counts) { n.own = n.own.plus(callCountsOf(c)) }

// Capture takes up what was counted, and returns as of when.
func (n *CallsNode) Capture(now time.Duration) time.Duration {
	at := min(now, n.state.capturedAt+n.state.interval)
	n.state.capture(now, n.own)
	return at
}

// CaptureStale takes up what was counted as it was read some time ago.
func (n *CallsNode) CaptureStale(now time.Duration, c window.Counts) {
	n.state.capture(now, callCountsOf(c))
}

// Delta is what a node counted in a stretch of time.
type Delta struct {
	At    time.Duration
	Calls window.Counts
}

// Message is a flush under way.
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

// Deliver runs the script as if at the given time of the server, since 1970, and returns
// its answer.
func (m Message) Deliver(ctx context.Context, at time.Duration) ([]int64, error) {
	m.args[2] = micros(at)
	return m.link.eval(ctx, callsScript, []string{m.key}, m.args)
}

// Receive takes the answer to the message that was sent last.
func (n *CallsNode) Receive(m Message, reply []int64) { n.state.receive(parseReply(reply, m.sent)) }

// Window is what Calls.Counts would return.
func (n *CallsNode) Window(now time.Duration) window.Counts {
	return n.state.snapshot(now, nil).windowAt(now).windowCounts()
}

// Totals are what Calls.Totals would return.
func (n *CallsNode) Totals() window.Totals {
	return window.Totals(n.own.plus(n.state.others).windowCounts())
}

// Forget is that of Calls.
func (n *CallsNode) Forget(now time.Duration) { n.state.forget(now) }

// Late is how many calls of this node arrived too late for the window.
func (n *CallsNode) Late() int64 { return n.state.late }

// Lost are the calls of which it is not known whether they arrived.
func (n *CallsNode) Lost() window.Counts { return n.state.lost.windowCounts() }

// Fleet is what Redis told last: what was counted in time, on all nodes.
func (n *CallsNode) Fleet() window.Counts { return n.state.latest.total.windowCounts() }

// Key is where Redis keeps the window.
func (c *Calls) Key() string { return c.key }

// Flushes is how many round trips Redis has answered.
func (c *Calls) Flushes() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.flushes
}

// Late is how many calls of this node arrived too late for the window.
func (c *Calls) Late() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.late
}

// FailedFlushes is how many round trips have failed.
func (c *Calls) FailedFlushes() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}

// Lost are the calls of this node of which it is not known whether they arrived.
func (c *Calls) Lost() window.Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.lost.windowCounts()
}

// Lag is the metric weir.window.lag: how old the counts of the other nodes are.
func (c *Calls) Lag() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now() - c.answeredAt
}
