package fleet_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/window"
)

// fleetModel is a simple model of a fleet's window: a list of counts with the server's time,
// and for each node the highest number of a flush that arrived. The network between
// the nodes and the server loses, delays and duplicates messages in both directions.
type fleetModel struct {
	t      *testing.T
	rand   *rand.Rand
	shape  fleet.CallsConfig
	now    time.Duration // the server's time
	nodes  []*modelNode
	wires  []*flushInFlight // to the server, in no order
	counts []counted
	dead   []*modelNode
}

type modelNode struct {
	*fleet.CallsNode
	id      int
	epoch   time.Duration // when its clock began, by the server's clock
	counted int64
	flushed map[int64]int64 // calls by number of the flush
	arrived int64           // number of its latest flush that the server accepted
	// how long the latest answered request took to the server; below 0 for none
	delay    time.Duration
	pending  *flushInFlight // the flush whose reply it waits for
	deadline time.Duration
}

type flushInFlight struct {
	fleet.Message
	node  *modelNode
	sent  time.Duration
	due   time.Duration
	delay time.Duration // the node's delay when it sent this
	heard time.Duration // when the answer arrives; 0 for never
}

// counted is calls that the server accepted.
type counted struct {
	node   *modelNode
	bucket int64
	late   bool
	calls  window.Counts
}

const (
	modelBuckets = 5
	modelWidth   = time.Second
	modelTimeout = 300 * time.Millisecond
)

func newFleetModel(t *testing.T, seed uint64) *fleetModel {
	m := &fleetModel{
		t: t, rand: rand.New(rand.NewPCG(seed, 1)), now: 1_800_000_000 * time.Second,
		shape: fleet.CallsConfig{Span: modelBuckets * modelWidth, Buckets: modelBuckets, Interval: modelWidth / 2},
	}
	return m
}

func (m *fleetModel) join(l *fleet.Link, name string) {
	n := &modelNode{CallsNode: fleet.NewCallsNode(l, name, m.shape), id: len(m.nodes), epoch: m.now, delay: -1, flushed: map[int64]int64{}}
	m.nodes = append(m.nodes, n)
}

func (n *modelNode) localTime(now time.Duration) time.Duration { return now - n.epoch }

func calls(c window.Counts) int64 { return c.Calls() + c.Ignored + c.Refused }

// step advances time. During that time, nodes count calls, capture them and send them.
func (m *fleetModel) step(faults bool) {
	m.advance(time.Duration(m.rand.Int64N(int64(250 * time.Millisecond))).Truncate(time.Microsecond))
	for _, n := range m.nodes {
		if m.rand.IntN(2) == 0 {
			c := window.Counts{Successes: m.rand.Int64N(5), Failures: m.rand.Int64N(5), Ignored: m.rand.Int64N(2), Refused: m.rand.Int64N(2)}
			c.Slow = m.rand.Int64N(c.Calls() + 1)
			c.SlowFailures = min(c.Slow, c.Failures)
			n.Count(c)
			n.counted += calls(c)
		}
		if n.pending != nil && m.now < n.deadline {
			continue
		}
		n.pending = nil
		if m.rand.IntN(3) == 0 {
			n.Capture(n.localTime(m.now))
			m.send(n, faults)
		}
	}
}

func (m *fleetModel) send(n *modelNode, faults bool) {
	way := func() time.Duration {
		return time.Duration(m.rand.Int64N(int64(20*time.Millisecond))).Truncate(time.Microsecond) + time.Microsecond
	}
	w := &flushInFlight{Message: n.Send(n.localTime(m.now)), node: n, sent: m.now, due: m.now + way(), delay: n.delay}
	w.heard = w.due + way()
	n.pending, n.deadline = w, m.now+modelTimeout
	if sum := w.sum(); len(w.Deltas) > 0 {
		require.Contains(m.t, []int64{0, sum}, n.flushed[w.Number], "a flush that is sent again must not change")
		n.flushed[w.Number] = sum
	}
	if !faults {
		m.wires = append(m.wires, w)
		return
	}
	switch m.rand.IntN(6) {
	case 0: // the request is lost
		return
	case 1: // the answer is lost
		w.heard = 0
	case 2: // the request is held up for long
		w.due += time.Duration(m.rand.Int64N(int64(2 * modelBuckets * modelWidth))).Truncate(time.Microsecond)
		w.heard = w.due + way()
	case 3: // it arrives twice
		again := *w
		again.due += time.Duration(m.rand.Int64N(int64(2 * modelBuckets * modelWidth))).Truncate(time.Microsecond)
		again.heard = 0
		m.wires = append(m.wires, &again)
	}
	m.wires = append(m.wires, w)
}

// advance delivers messages that are due.
func (m *fleetModel) advance(d time.Duration) {
	until := m.now + d
	slices.SortStableFunc(m.wires, func(a, b *flushInFlight) int { return cmp.Compare(a.due, b.due) })
	for len(m.wires) > 0 && m.wires[0].due <= until {
		w := m.wires[0]
		m.wires = m.wires[1:]
		m.now = max(m.now, w.due)
		m.deliver(w)
	}
	m.now = until
}

func (m *fleetModel) deliver(w *flushInFlight) {
	reply, err := w.Deliver(m.t.Context(), m.now)
	require.NoError(m.t, err)
	m.apply(w)
	n := w.node
	if n.pending == w && w.heard > 0 && w.heard < n.deadline {
		n.Receive(w.Message, reply)
		n.delay, n.pending = w.due-w.sent, nil
		m.compare(n)
	}
}

// apply updates the model as the server should update its state.
func (m *fleetModel) apply(w *flushInFlight) {
	n := w.node
	if len(w.Deltas) == 0 || w.Number <= n.arrived {
		return
	}
	n.arrived = w.Number
	// The node assumes that the server's clock is ahead by the time that its latest request took to
	// arrive.
	ahead := w.due - w.sent
	if w.delay >= 0 {
		ahead = min(ahead, w.delay)
	}
	newest := int64(m.now / modelWidth)
	for _, d := range w.Deltas {
		bucket := int64((n.epoch + d.At + ahead) / modelWidth)
		m.counts = append(m.counts, counted{n, bucket, bucket <= newest-modelBuckets, d.Calls})
	}
}

// compare compares the latest reply to a node with the model.
func (m *fleetModel) compare(n *modelNode) {
	var total window.Counts
	late := int64(0)
	for _, c := range m.counts {
		switch {
		case c.late && c.node == n:
			late += calls(c.calls)
		case !c.late:
			total = plus(total, c.calls)
		}
	}
	require.Equal(m.t, total, n.Fleet(), "counted in time")
	require.Equal(m.t, late, n.Late(), "late")
	require.GreaterOrEqual(m.t, n.Window(n.localTime(m.now)).Calls(), m.window(n).Calls(), "the window and what the node has not sent yet")
}

func plus(a, b window.Counts) window.Counts {
	a.Successes += b.Successes
	a.Failures += b.Failures
	a.Slow += b.Slow
	a.SlowFailures += b.SlowFailures
	a.Ignored += b.Ignored
	a.Refused += b.Refused
	return a
}

// kill replaces a node by a new one, without a last flush.
func (m *fleetModel) kill(l *fleet.Link, name string, i int) {
	m.wires = slices.DeleteFunc(m.wires, func(w *flushInFlight) bool { return w.node == m.nodes[i] })
	m.dead = append(m.dead, m.nodes[i])
	m.nodes = slices.Delete(m.nodes, i, i+1)
	m.join(l, name)
}

// serverSum returns what the server knows of a node.
func (m *fleetModel) serverSum(n *modelNode) (sum int64) {
	for _, c := range m.counts {
		if c.node == n {
			sum += calls(c.calls)
		}
	}
	return sum
}

func (w *flushInFlight) sum() (sum int64) {
	for _, d := range w.Deltas {
		sum += calls(d.Calls)
	}
	return sum
}

// deliverAll makes the network reliable, and waits until everything is delivered.
func (m *fleetModel) deliverAll() {
	for range 400 {
		m.step(false)
	}
	for _, n := range m.nodes {
		m.advance(modelTimeout)
		n.pending = nil
		n.Capture(n.localTime(m.now))
		for range 2 {
			m.send(n, false)
			m.advance(modelTimeout)
		}
	}
}

func TestCallsMatchModelOnABadNetwork(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			l, m := connect(t), newFleetModel(t, seed)
			for range 3 {
				m.join(l, nameOfTest(t))
			}
			for i := range 400 {
				m.step(true)
				if i%150 == 149 {
					m.kill(l, nameOfTest(t), m.rand.IntN(len(m.nodes)))
				}
			}
			m.deliverAll()
			for _, n := range m.nodes {
				require.Zero(t, n.Lost())
				require.Equal(t, n.counted, m.serverSum(n), "each call once, in time or late")
			}
			for _, n := range m.dead {
				told := int64(0)
				for number := range n.arrived {
					told += n.flushed[number+1]
				}
				require.Equal(t, told, m.serverSum(n), "each call once that arrived")
				require.GreaterOrEqual(t, n.arrived, int64(len(n.flushed))-1, "one flush is lost at most")
			}
			n := m.nodes[0]
			m.send(n, false)
			m.advance(modelTimeout)
			require.Equal(t, m.window(n), n.Window(n.localTime(m.now)))
		})
	}
}

// window returns the model's window, at the time that the node assumes for the server.
func (m *fleetModel) window(n *modelNode) (c window.Counts) {
	newest := int64((m.now + n.delay) / modelWidth)
	for _, one := range m.counts {
		if !one.late && one.bucket > newest-modelBuckets {
			c = plus(c, one.calls)
		}
	}
	return c
}
