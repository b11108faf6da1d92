package fleet_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/window"
)

func TestOwnCallsCountUntilTheirArrivalIsKnown(t *testing.T) {
	s := newTestFleet(t)
	a, b := s.node(), s.node()
	s.exchange(a, b)
	a.Count(failedCounts(3))
	s.wait(500 * time.Millisecond)
	a.Capture(s.local())
	lost := a.Send(s.local())
	s.deliver(lost) // and the answer is lost
	s.requireWindow(failedCounts(3), a)
	a.Count(failedCounts(4))
	s.wait(500 * time.Millisecond)
	a.Capture(s.local())
	s.requireWindow(failedCounts(7), a)

	again := a.Send(s.local())
	require.Equal(t, lost.Deltas, again.Deltas)
	a.Receive(again, s.deliver(again))
	s.requireWindow(failedCounts(7), a)
	s.exchange(b)
	s.requireWindow(failedCounts(3), b)
	s.exchange(a, b)
	s.deliver(lost) // a delayed message of the network
	s.exchange(a, b)
	s.requireWindow(failedCounts(7), a, b)
	require.Equal(t, window.Totals(failedCounts(7)), a.Totals())
	require.Equal(t, window.Totals(failedCounts(7)), b.Totals())
}

func TestADisconnectedNodeContinuesAlone(t *testing.T) {
	s := newTestFleet(t)
	a, b := s.node(), s.node()
	a.Count(failedCounts(10))
	s.exchange(a, b)
	for range 4 {
		s.wait(500 * time.Millisecond)
		b.Capture(s.local())
		b.Count(succeededCounts(1))
		s.wait(500 * time.Millisecond)
		b.Capture(s.local())
	}
	s.requireWindow(window.Counts{Successes: 4, Failures: 10}, b)
	s.wait(time.Second)
	s.requireWindow(succeededCounts(4), b)
	s.wait(4 * time.Second)
	s.requireWindow(window.Counts{}, b)
	require.Equal(t, window.Totals{Successes: 4}, b.Totals(), "earlier calls do not count in Totals")
}

func TestOldCallsOfAHealedNodeDoNotCount(t *testing.T) {
	s := newTestFleet(t)
	cut, other := s.node(), s.node()
	cut.Count(succeededCounts(1))
	s.exchange(cut, other)
	for range 20 {
		for range 2 {
			s.wait(500 * time.Millisecond)
			cut.Count(failedCounts(1))
			cut.Capture(s.local())
			other.Count(succeededCounts(1))
			s.exchange(other)
		}
	}
	s.requireWindow(succeededCounts(9), other)
	s.requireWindow(failedCounts(9), cut)

	s.exchange(cut, other)
	// Of twenty seconds of failures, those of the last five count in the window. The others count
	// as Late only.
	s.requireWindow(window.Counts{Successes: 9, Failures: 9}, cut, other)
	require.Equal(t, window.Totals{Successes: 40, Failures: 9}, other.Totals())
	require.Equal(t, window.Totals{Successes: 10, Failures: 40}, cut.Totals(), "only the others' calls in the window are new")
	require.Equal(t, int64(31), cut.Late())
	require.Zero(t, other.Late())
}

func TestAFlushThatWasHeldUpIsDatedByWhenItWasSent(t *testing.T) {
	for held, want := range map[time.Duration]int64{0: 5, 3 * time.Second: 5, 8 * time.Second: 0} {
		s := newTestFleet(t)
		a, b := s.node(), s.node()
		s.exchange(a, b)
		a.Count(failedCounts(5))
		s.wait(500 * time.Millisecond)
		a.Capture(s.local())
		m := a.Send(s.local())
		s.wait(held)
		a.Receive(m, s.deliver(m))
		s.exchange(b)
		s.requireWindow(failedCounts(want), b)
		s.wait(5*time.Second - held)
		s.exchange(b)
		s.requireWindow(window.Counts{}, b)
		sharedServer().Do("DEL", keyOf(t))
	}
}

func TestCallsAreNotSentTwiceAfterDataLoss(t *testing.T) {
	s := newTestFleet(t)
	a, b, reader := s.node(), s.node(), s.node()
	a.Count(failedCounts(10))
	s.exchange(a, b, reader)
	s.wait(time.Second)
	b.Count(failedCounts(1))
	s.exchange(b, a, reader)
	require.Equal(t, window.Totals(failedCounts(11)), a.Totals())

	sharedServer().Do("DEL", keyOf(t))
	a.Count(failedCounts(2))
	b.Count(failedCounts(3))
	s.exchange(a, b, a, b, reader)
	s.requireWindow(failedCounts(5), a, b, reader)
	require.Equal(t, window.Totals(failedCounts(16)), a.Totals(), "totals continue")
	require.Equal(t, window.Totals(failedCounts(6)), b.Totals(), "the new node knows of 10 earlier calls")
	require.Equal(t, window.Totals(failedCounts(6)), reader.Totals())
}

func TestANodeThatOnlyReadsForHoursCountsItsOwnCallsOnce(t *testing.T) {
	s := newTestFleet(t)
	a, b := s.node(), s.node()
	a.Count(failedCounts(10))
	s.exchange(a, b)
	for range 3000 {
		s.wait(4 * time.Second)
		s.exchange(a)
	}
	b.Capture(s.local())
	b.Count(failedCounts(1))
	s.exchange(b, a) // by now the server has forgotten how many of the calls were a's
	require.Equal(t, window.Totals(failedCounts(11)), a.Totals())
}

func TestAFlushInDoubtIsGivenUpBeforeItsNumberIsForgotten(t *testing.T) {
	s := newTestFleet(t)
	a := s.node()
	s.exchange(a)
	a.Count(failedCounts(5))
	s.wait(time.Second)
	a.Capture(s.local())
	doubtful := a.Send(s.local())
	s.deliver(doubtful)
	a.Count(failedCounts(2))
	s.wait(time.Second)
	a.Capture(s.local())

	s.wait(2 * time.Hour)
	next := a.Send(s.local())
	require.NotEqual(t, doubtful.Number, next.Number)
	require.Equal(t, failedCounts(5), a.Lost())
	a.Receive(next, s.deliver(next))
	for i := range 4 {
		s.wait(45 * time.Minute)
		other := s.node()
		other.Count(failedCounts(1))
		s.exchange(other) // a new node makes the server forget nodes that have been silent for long
		nodes := 0
		for _, field := range newClient(t, sharedServer()).HKeys(t.Context(), keyOf(t)).Val() {
			if field[0] == 'n' {
				nodes++
			}
		}
		require.Equal(t, []int{2, 3, 3, 3}[i], nodes, "two hours and ten seconds after its last flush")
	}
	s.exchange(a)
	require.Equal(t, failedCounts(9), a.Fleet(), "nothing twice")
	require.Equal(t, int64(2), a.Late())
	require.InDelta(t, 2*time.Hour+10*time.Second, newClient(t, sharedServer()).PTTL(t.Context(), keyOf(t)).Val(), float64(time.Minute))
}

func TestPendingDeltasAreBounded(t *testing.T) {
	s := newTestFleet(t)
	a := s.node()
	for range 10_000 {
		a.Count(failedCounts(1))
		s.wait(500 * time.Millisecond)
		a.Capture(s.local())
	}
	m := a.Send(s.local())
	require.LessOrEqual(t, len(m.Deltas), 14)
	sum := int64(0)
	for _, d := range m.Deltas {
		sum += d.Calls.Failures
	}
	require.Equal(t, int64(10_000), sum)
}

func TestForeignValuesAreNotChanged(t *testing.T) {
	s := newTestFleet(t)
	a := s.node()
	a.Count(failedCounts(1))
	s.exchange(a)
	key := keyOf(t)
	for _, spoil := range [][]any{
		{"SET", key, "text"},
		{"HSET", key, "field", "value"},
		{"HSET", key, "life", "c12", "total", "1 2 3"},
		{"HSET", key, "life", "c12", "total", "1 2 3 4 5 x6"},
		{"HSET", key, "life", "c12", "0", "1 2 3 4 5 6 0x7"},
		{"HSET", key, "life", "12"},
		{"ZADD", key, "1", "member"},
	} {
		sharedServer().Do("DEL", key)
		sharedServer().Do(spoil...)
		before := sharedServer().Do("DUMP", key)
		a.Count(failedCounts(1))
		a.Capture(s.local())
		_, err := a.Send(s.local()).Deliver(t.Context(), s.now)
		require.ErrorIs(t, err, fleet.ErrForeign)
		require.Equal(t, before, sharedServer().Do("DUMP", key))
	}
}
