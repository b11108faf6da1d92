package fleet_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/window"
)

func TestForgottenCallsStayForgotten(t *testing.T) {
	s := newTestFleet(t)
	a, b := s.node(), s.node()
	s.exchange(a, b)
	s.wait(900 * time.Millisecond)
	s.exchange(a)
	a.Count(failedCounts(1))
	b.Count(failedCounts(2))
	b.Forget(s.local())
	s.requireWindow(window.Counts{}, b)
	s.wait(200 * time.Millisecond)
	s.exchange(a, b) // captures a's call from before Forget, in a new bucket
	s.requireWindow(window.Counts{}, b)
	s.wait(500 * time.Millisecond)
	a.Count(failedCounts(10))
	s.exchange(a, b)
	s.requireWindow(window.Counts{}, b) // the rest of that bucket is left out too
	s.wait(400 * time.Millisecond)
	a.Count(failedCounts(20))
	b.Count(failedCounts(40))
	s.exchange(b, a, b)
	s.requireWindow(failedCounts(60), b)
	s.requireWindow(failedCounts(73), a)
	require.Equal(t, window.Totals(failedCounts(73)), b.Totals())
}

func TestCallsCapturedLateCountAsOld(t *testing.T) {
	s := newTestFleet(t)
	a, b := s.node(), s.node()
	s.exchange(a, b)
	a.Count(failedCounts(10))
	s.wait(20 * time.Second) // the process stands still
	s.exchange(a, b)
	s.requireWindow(window.Counts{}, a, b)
	require.Equal(t, int64(10), a.Late())
	require.Equal(t, window.Totals(failedCounts(10)), a.Totals())
}

func TestAFailoverTakesBackNoTotals(t *testing.T) {
	s := newTestFleet(t)
	a, b := s.node(), s.node()
	s.exchange(a, b)
	a.Count(failedCounts(10))
	s.wait(time.Second)
	s.exchange(a, b)
	key := keyOf(t)
	stale := sharedServer().Do("DUMP", key)
	a.Count(failedCounts(5))
	s.wait(time.Second)
	s.exchange(a, b)
	require.Equal(t, window.Totals(failedCounts(15)), b.Totals())

	sharedServer().Do("RESTORE", key, "0", stale, "REPLACE")
	s.wait(time.Second)
	s.exchange(a, b)
	s.requireWindow(failedCounts(10), a, b) // calls that were not replicated are lost
	require.Equal(t, window.Totals(failedCounts(15)), b.Totals())
	a.Count(failedCounts(1))
	s.wait(time.Second)
	s.exchange(a, b)
	require.Equal(t, window.Totals(failedCounts(16)), b.Totals())
	require.Equal(t, window.Totals(failedCounts(16)), a.Totals())
}

// A replica that takes over knows of fewer calls. If later calls make up for the missing successes,
// but not for the missing failures, Totals must not add the successes alone.
func TestAFailoverDoesNotChangeTheRatesOfTotals(t *testing.T) {
	s := newTestFleet(t)
	a, b := s.node(), s.node()
	s.exchange(a, b)
	a.Count(window.Counts{Successes: 100, Failures: 10})
	s.wait(time.Second)
	s.exchange(a, b)
	stale := sharedServer().Do("DUMP", keyOf(t))
	a.Count(window.Counts{Successes: 10, Failures: 10})
	s.wait(time.Second)
	s.exchange(a, b)
	require.Equal(t, window.Totals{Successes: 110, Failures: 20}, b.Totals())

	sharedServer().Do("RESTORE", keyOf(t), "0", stale, "REPLACE")
	// more successes than were forgotten, and fewer failures
	a.Count(window.Counts{Successes: 90, Failures: 9})
	s.wait(time.Second)
	s.exchange(a, b)
	require.Equal(t, window.Totals{Successes: 110, Failures: 20}, b.Totals(), "calls that cannot be told apart are all left out")
	a.Count(window.Counts{Successes: 10, Failures: 1})
	s.wait(time.Second)
	s.exchange(a, b)
	require.Equal(t, window.Totals{Successes: 120, Failures: 21}, b.Totals())
}

func TestClockThatGoesBackRevivesNoCalls(t *testing.T) {
	for back, want := range map[time.Duration]int64{2 * time.Second: 11, time.Hour: 1} {
		s := newTestFleet(t)
		a := s.node()
		a.Count(failedCounts(10))
		s.exchange(a)
		s.wait(time.Second)
		a.Count(failedCounts(1))
		a.Capture(s.local())
		m := a.Send(s.local())
		s.now -= back
		reply := s.deliver(m)
		s.now += back
		a.Receive(m, reply)
		s.requireWindow(failedCounts(want), a)
		sharedServer().Do("DEL", keyOf(t))
	}
}

func TestStaleCountsAddNothing(t *testing.T) {
	s := newTestFleet(t)
	a := s.node()
	a.Count(failedCounts(5))
	a.Capture(s.local())
	a.CaptureStale(s.local(), failedCounts(3))
	a.Capture(s.local())
	s.requireWindow(failedCounts(5), a)
}
