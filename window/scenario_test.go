package window_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/window"
)

// The tests of this file are the numbered window scenarios of the project: A and B are those of
// breakers, L those of limiters.

// callStep is a number of calls at a time after t0, and the counts of the window after them.
type callStep struct {
	at       time.Duration
	do       string // one letter per call: S for success, E for failure, s and e for slow ones
	calls    int64
	failures int64
	slow     int64
}

func replay(t *testing.T, c *window.Calls, steps []callStep) {
	t.Helper()
	const fast, slow = 100 * time.Millisecond, time.Second
	for i, s := range steps {
		now := t0.Add(s.at)
		for _, call := range s.do {
			switch call {
			case 'S':
				c.RecordAt(now, window.Success, fast)
			case 'E':
				c.RecordAt(now, window.Failure, fast)
			case 's':
				c.RecordAt(now, window.Success, slow)
			case 'e':
				c.RecordAt(now, window.Failure, slow)
			}
		}
		got := c.CountsAt(now)
		require.Equal(t, []int64{s.calls, s.failures, s.slow}, []int64{got.Calls(), got.Failures, got.Slow},
			"calls, failures, slow of step %d at %v", i, s.at)
	}
}

const slowThreshold = 500 * time.Millisecond

func TestScenarioB39_TheLastFourCalls(t *testing.T) {
	replay(t, window.NewCalls(window.CallsConfig{Last: 4, Slow: slowThreshold}), []callStep{
		{0, "E", 1, 1, 0}, {0, "S", 2, 1, 0}, {0, "S", 3, 1, 0}, {0, "S", 4, 1, 0}, {0, "S", 4, 0, 0},
	})
}

func TestScenarioB40_SlowOnesOfTheLastTwo(t *testing.T) {
	c := window.NewCalls(window.CallsConfig{Last: 2, Slow: slowThreshold})
	replay(t, c, []callStep{{0, "e", 1, 1, 1}})
	require.Equal(t, int64(1), c.Counts().SlowFailures)
	replay(t, c, []callStep{{0, "s", 2, 1, 2}, {0, "S", 2, 0, 1}, {0, "S", 2, 0, 0}})
	require.Equal(t, window.Totals{Successes: 3, Failures: 1, Slow: 2, SlowFailures: 1}, c.Totals())
}

func TestScenarioB41_MeanOfFastAndSlow(t *testing.T) {
	c := window.NewCallsAt(window.CallsConfig{Slow: slowThreshold, Latency: true}, t0)
	for i, took := range []time.Duration{10 * time.Second, 10 * time.Second, 100 * time.Millisecond, 100 * time.Millisecond, 100 * time.Millisecond} {
		outcome := window.Success
		if i == 1 {
			outcome = window.Failure
		}
		c.RecordAt(t0, outcome, took)
	}
	l := c.LatencyAt(t0)
	require.InDelta(t, 20.3, l.Sum, 1e-9)
	require.Equal(t, 4060*time.Millisecond, l.Mean())
	require.Equal(t, 0.4, c.CountsAt(t0).SlowRate())
}

func TestScenarioB42_FiveSeconds(t *testing.T) {
	const ms = time.Millisecond
	replay(t, window.NewCallsAt(window.CallsConfig{Span: 5 * time.Second, Buckets: 5, Slow: slowThreshold}, t0), []callStep{
		{0, "E", 1, 1, 0},
		{100 * ms, "S", 2, 1, 0},
		{800 * ms, "e", 3, 2, 1},
		{4800 * ms, "", 3, 2, 1},
		{5800 * ms, "", 0, 0, 0},
		{5900 * ms, "S", 1, 0, 0},
		{10_900 * ms, "S", 1, 0, 0},
	})
}

func TestScenarioB43_FiveSecondsWithCallsEachSecond(t *testing.T) {
	const ms = time.Millisecond
	replay(t, window.NewCallsAt(window.CallsConfig{Span: 5 * time.Second, Buckets: 5}, t0), []callStep{
		{0, "E", 1, 1, 0},
		{100 * ms, "S", 2, 1, 0},
		{200 * ms, "S", 3, 1, 0},
		{1200 * ms, "S", 4, 1, 0},
		{2200 * ms, "S", 5, 1, 0},
		{3200 * ms, "E", 6, 2, 0},
		{4200 * ms, "S", 7, 2, 0},
		{5200 * ms, "S", 5, 1, 0},
		{6200 * ms, "S", 5, 1, 0},
		{11_200 * ms, "S", 1, 0, 0},
	})
}

func TestScenarioB59_RollingTenSeconds(t *testing.T) {
	const s = time.Second
	c := window.NewCallsAt(window.CallsConfig{Span: 10 * s, Buckets: 10}, t0)
	replay(t, c, []callStep{
		{0, "ES", 2, 1, 0},
		{2 * s, "", 2, 1, 0},
		{2 * s, "ES", 4, 2, 0},
		{4 * s, "SS", 6, 2, 0},
		{6 * s, "SS", 8, 2, 0},
		{8 * s, "", 8, 2, 0},
		{8 * s, "SS", 10, 2, 0},
		{10 * s, "", 8, 1, 0},
		{12 * s, "", 6, 0, 0},
	})
}

func TestScenarioB60_TheOldestSecondLeaves(t *testing.T) {
	c := window.NewCallsAt(window.CallsConfig{Span: 10 * time.Second}, t0)
	for s := range 10 {
		c.RecordAt(t0.Add(time.Duration(s)*time.Second), window.Success, 0)
	}
	for s, want := range map[time.Duration]int64{10: 9, 11: 8, 18: 1, 19: 0, 20: 0} {
		require.Equal(t, want, c.CountsAt(t0.Add(s*time.Second)).Calls(), "at %d s", s)
	}
	replay(t, window.NewCallsAt(window.CallsConfig{Span: 10 * time.Second}, t0), []callStep{
		{0, "ESSSS", 5, 1, 0}, {10*time.Second - 1, "", 5, 1, 0}, {10 * time.Second, "", 0, 0, 0}, {10*time.Second + time.Millisecond, "", 0, 0, 0},
	})
}

func TestScenarioB61_OneBucket(t *testing.T) {
	replay(t, window.NewCallsAt(window.CallsConfig{Span: 100 * time.Millisecond, Buckets: 1}, t0), []callStep{
		{0, "SE", 2, 1, 0}, {100*time.Millisecond - 1, "", 2, 1, 0}, {100 * time.Millisecond, "", 0, 0, 0},
	})
}

func TestScenarioB71_AReadFillsTheGap(t *testing.T) {
	const width = 20 * time.Millisecond
	c := window.NewCounterAt(window.Config{Span: 10 * width}, t0)
	c.AddAt(t0, 1)
	c.AddAt(t0.Add(3*width), 1)
	require.Equal(t, int64(2), c.SumAt(t0.Add(3*width)))
	var filled int
	for at := range c.BucketsAt(t0.Add(3 * width)) {
		if !at.Before(t0) {
			filled++
		}
	}
	require.Equal(t, 4, filled)
	require.Zero(t, c.SumAt(t0.Add(3*width+10*width)))
}

func TestScenarioB75_GapsOfAnyLength(t *testing.T) {
	const s = time.Second
	replay(t, window.NewCallsAt(window.CallsConfig{Span: 10 * s}, t0), []callStep{
		{0, "E", 1, 1, 0},
		{5 * s, "S", 2, 1, 0},
		{10*s + 500*time.Millisecond, "S", 2, 0, 0},
		{1010 * s, "E", 1, 1, 0},
	})
	replay(t, window.NewCallsAt(window.CallsConfig{Span: 10 * s}, t0), []callStep{
		{0, "EE", 2, 2, 0}, {6 * s, "SSSSSSSS", 10, 2, 0}, {17 * s, "", 0, 0, 0},
	})
	c := window.NewCallsAt(window.CallsConfig{Span: 10 * time.Millisecond, Buckets: 10}, t0)
	replay(t, c, []callStep{{0, "ESS", 3, 1, 0}, {60 * 24 * time.Hour, "ES", 2, 1, 0}})
	require.Equal(t, window.Totals{Successes: 3, Failures: 2}, c.Totals())
}

func TestScenarioB80_TheClockStepsBack(t *testing.T) {
	for _, back := range []time.Duration{10 * time.Millisecond, 5 * time.Second, time.Hour} {
		at := 30 * time.Second
		replay(t, window.NewCallsAt(window.CallsConfig{Span: 10 * time.Second}, t0), []callStep{
			{at, "EES", 3, 2, 0},
			{at - back, "", 3, 2, 0},  // the window keeps its counts
			{at - back, "S", 4, 2, 0}, // and counts more
			{at + 9*time.Second, "S", 5, 2, 0},
			{at + 10*time.Second, "", 1, 0, 0}, // and ages as usual
		})
	}
}

func TestScenarioL48_EventsLeaveHoweverOftenTheWindowIsRead(t *testing.T) {
	for _, poll := range []time.Duration{0, 9 * time.Second, 19 * time.Second} {
		for edge, gone := range map[window.Edge]time.Duration{window.Recent: 60 * time.Second, window.Strict: 70 * time.Second} {
			c := window.NewCounterAt(window.Config{Span: time.Minute, Buckets: 6, Edge: edge}, t0)
			c.AddAt(t0, 1)
			for at := poll; poll > 0 && at < gone; at += poll {
				require.Equal(t, int64(1), c.SumAt(t0.Add(at)), "%v edge, at %v", edge, at)
				c.AddAt(t0.Add(at), 0)
			}
			require.Equal(t, int64(1), c.SumAt(t0.Add(gone-1)), "%v edge", edge)
			require.Zero(t, c.SumAt(t0.Add(gone)), "%v edge, polled each %v", edge, poll)
		}
	}
}

func TestScenarioL49_AnIdleHourDoesNotStretchTheWindow(t *testing.T) {
	for _, idle := range []time.Duration{60 * time.Second, 61 * time.Second, time.Hour} {
		c := window.NewCounterAt(window.Config{Span: time.Minute, Buckets: 60}, t0)
		c.AddAt(t0, 5)
		require.Zero(t, c.SumAt(t0.Add(idle)))
		c.AddAt(t0.Add(idle), 1)
		require.Equal(t, int64(1), c.SumAt(t0.Add(idle)))
		buckets := 0
		for range c.BucketsAt(t0.Add(idle)) {
			buckets++
		}
		require.Equal(t, 60, buckets)
		require.Equal(t, int64(1), c.SumAt(t0.Add(idle+59*time.Second)))
		require.Zero(t, c.SumAt(t0.Add(idle+61*time.Second)))
	}
}
