package fleet_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/window"
)

// testFleet holds nodes and a server, all with one clock.
type testFleet struct {
	t   *testing.T
	now time.Duration // since 1970
}

const startTime = 1_800_000_000 * time.Second

func newTestFleet(t *testing.T) *testFleet { return &testFleet{t, startTime} }

// node returns a node whose window has five buckets of one second, with two flushes per second.
func (s *testFleet) node() *fleet.CallsNode {
	n := fleet.NewCallsNode(connect(s.t), nameOfTest(s.t), fleet.CallsConfig{Span: 5 * time.Second, Buckets: 5, Interval: 500 * time.Millisecond})
	n.Capture(s.local())
	return n
}

func (s *testFleet) local() time.Duration { return s.now - startTime }

func (s *testFleet) wait(d time.Duration) { s.now += d }

// exchange sends the flush of a node and processes the reply.
func (s *testFleet) exchange(nodes ...*fleet.CallsNode) {
	s.t.Helper()
	for _, n := range nodes {
		n.Capture(s.local())
		m := n.Send(s.local())
		n.Receive(m, s.deliver(m))
	}
}

func (s *testFleet) deliver(m fleet.Message) []int64 {
	s.t.Helper()
	reply, err := m.Deliver(s.t.Context(), s.now)
	require.NoError(s.t, err)
	return reply
}

func failedCounts(n int64) window.Counts { return window.Counts{Failures: n} }

func succeededCounts(n int64) window.Counts { return window.Counts{Successes: n} }

func (s *testFleet) requireWindow(want window.Counts, nodes ...*fleet.CallsNode) {
	s.t.Helper()
	for _, n := range nodes {
		require.Equal(s.t, want, n.Window(s.local()), "at %v", s.local())
	}
}

// keyOf returns the only Redis key of the test.
func keyOf(t *testing.T) string {
	keys, err := newClient(t, sharedServer()).Keys(t.Context(), "*"+t.Name()+"*").Result()
	require.NoError(t, err)
	require.Len(t, keys, 1)
	return keys[0]
}
