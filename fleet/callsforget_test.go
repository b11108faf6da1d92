package fleet_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/window"
)

func TestForgottenCallsStayForgotten(t *testing.T) {
	s := newStage(t)
	a, b := s.node(), s.node()
	s.exchange(a, b)
	s.wait(900 * time.Millisecond)
	s.exchange(a)
	a.Count(failures(1))
	b.Count(failures(2))
	b.Forget(s.local())
	s.requireWindow(window.Counts{}, b)
	s.wait(200 * time.Millisecond)
	s.exchange(a, b) // takes up, in a new bucket, what was before
	s.requireWindow(window.Counts{}, b)
	s.wait(500 * time.Millisecond)
	a.Count(failures(10))
	s.exchange(a, b)
	s.requireWindow(window.Counts{}, b) // the rest of that bucket is left out too
	s.wait(400 * time.Millisecond)
	a.Count(failures(20))
	b.Count(failures(40))
	s.exchange(b, a, b)
	s.requireWindow(failures(60), b)
	s.requireWindow(failures(73), a)
	require.Equal(t, window.Totals(failures(73)), b.Totals())
}

func TestCallsCapturedLateCountAsOld(t *testing.T) {
	s := newStage(t)
	a, b := s.node(), s.node()
	s.exchange(a, b)
	a.Count(failures(10))
	s.wait(20 * time.Second) // the process stands still
	s.exchange(a, b)
	s.requireWindow(window.Counts{}, a, b)
	require.Equal(t, int64(10), a.Late())
	require.Equal(t, window.Totals(failures(10)), a.Totals())
}

func TestAFailoverTakesBackNoTotals(t *testing.T) {
	s := newStage(t)
	a, b := s.node(), s.node()
	s.exchange(a, b)
	a.Count(failures(10))
	s.wait(time.Second)
	s.exchange(a, b)
	key := keyOf(t)
	stale := server().Do("DUMP", key)
	a.Count(failures(5))
	s.wait(time.Second)
	s.exchange(a, b)
	require.Equal(t, window.Totals(failures(15)), b.Totals())

	server().Do("RESTORE", key, "0", stale, "REPLACE")
	s.wait(time.Second)
	s.exchange(a, b)
	s.requireWindow(failures(10), a, b) // calls that were not replicated are lost
	require.Equal(t, window.Totals(failures(15)), b.Totals())
	a.Count(failures(1))
	s.wait(time.Second)
	s.exchange(a, b)
	require.Equal(t, window.Totals(failures(16)), b.Totals())
	require.Equal(t, window.Totals(failures(16)), a.Totals())
}

// A replica that takes over knows fewer calls. Later calls must not make up for successes alone.
func TestAFailoverDoesNotChangeTheRatesOfTotals(t *testing.T) {
	s := newStage(t)
	a, b := s.node(), s.node()
	s.exchange(a, b)
	a.Count(window.Counts{Successes: 100, Failures: 10})
	s.wait(time.Second)
	s.exchange(a, b)
	stale := server().Do("DUMP", keyOf(t))
	a.Count(window.Counts{Successes: 10, Failures: 10})
	s.wait(time.Second)
	s.exchange(a, b)
	require.Equal(t, window.Totals{Successes: 110, Failures: 20}, b.Totals())

	server().Do("RESTORE", keyOf(t), "0", stale, "REPLACE")
	a.Count(window.Counts{Successes: 90, Failures: 9}) // more successes than were forgotten, and fewer failures
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
		s := newStage(t)
		a := s.node()
		a.Count(failures(10))
		s.exchange(a)
		s.wait(time.Second)
		a.Count(failures(1))
		a.Capture(s.local())
		m := a.Send(s.local())
		s.now -= back
		reply := s.deliver(m)
		s.now += back
		a.Receive(m, reply)
		s.requireWindow(failures(want), a)
		server().Do("DEL", keyOf(t))
	}
}

func TestStaleCountsAddNothing(t *testing.T) {
	s := newStage(t)
	a := s.node()
	a.Count(failures(5))
	a.Capture(s.local())
	a.CaptureStale(s.local(), failures(3))
	a.Capture(s.local())
	s.requireWindow(failures(5), a)
}
