package breaker_test

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/window"
)

func TestRateAtTheThresholdOpensAndOneBelowDoesNot(t *testing.T) {
	for _, c := range []struct {
		rate            float64
		failures, calls int
		want            breaker.State
	}{
		{0.57, 57, 100, breaker.Open},
		{0.57, 56, 100, breaker.Closed},
		{0.5, 50, 100, breaker.Open},
		{0.5, 248, 500, breaker.Closed}, // 49.6 %
		{2.0 / 3, 20, 30, breaker.Open},
		{1.0 / 3, 10, 30, breaker.Open},
		{1.0 / 3, 9, 30, breaker.Closed},
		{1, 20, 20, breaker.Open},
		{1, 99, 100, breaker.Closed},
		{1e-9, 1, 100, breaker.Open},
	} {
		b := breaker.New("b", breaker.Config{FailureRate: c.rate, MinCalls: c.calls})
		run(t, b, c.failures, fail)
		run(t, b, c.calls-c.failures, succeed)
		require.Equal(t, c.want, b.State(), "%d failures of %d at %v", c.failures, c.calls, c.rate)
	}
}

func TestNothingIsJudgedBelowMinCalls(t *testing.T) {
	b := breaker.New("b", breaker.Config{MinCalls: 10})
	run(t, b, 9, fail)
	require.Equal(t, breaker.Closed, b.State())
	run(t, b, 1, succeed)
	require.Equal(t, breaker.Open, b.State(), "a success may be the call that reaches MinCalls")
}

func TestMinCallsOneLetsTheFirstCallOpenAndFailureRateOffNone(t *testing.T) {
	b := breaker.New("b", breaker.Config{MinCalls: 1})
	run(t, b, 1, fail)
	require.Equal(t, breaker.Open, b.State())

	b = breaker.New("b", breaker.Config{FailureRate: breaker.Off})
	run(t, b, 1000, fail)
	require.Equal(t, breaker.Closed, b.State())
	require.Equal(t, int64(1000), b.Counts().Failures)
}

func TestOldFailuresLeaveTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("b", breaker.Config{FailureRun: breaker.Off})
		run(t, b, 19, fail)
		time.Sleep(10 * time.Second)
		run(t, b, 19, fail)
		require.Equal(t, breaker.Closed, b.State())
		require.Equal(t, int64(19), b.Counts().Failures)
		require.Equal(t, int64(38), b.Totals().Failures)
		run(t, b, 1, fail)
		require.Equal(t, breaker.Open, b.State())
	})
}

func TestDayOldSuccessesDoNotMaskFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("b", breaker.Config{})
		run(t, b, 10_000, succeed)
		time.Sleep(24 * time.Hour)
		open(t, b)
	})
}

func TestFailuresAmongManySuccessesAtABucketEdge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("b", breaker.Config{})
		run(t, b, 9100, succeed)
		time.Sleep(time.Second)
		run(t, b, 900, fail)
		require.Equal(t, breaker.Closed, b.State(), "9 % of 10,000 calls, not 100 % of the second's")
		require.InDelta(t, 0.09, b.Counts().FailureRate(), 1e-9)
	})
}

// Scenarios A01 and A02.
func TestSixFailuresInARowOpen(t *testing.T) {
	c := breaker.Config{FailureRate: breaker.Off, ConsecutiveFailures: 6}
	runScript(t, c, "0 - - closed -1 0 0 0 0", "0 EEEEE ..... closed", "0 S . closed", "0 EEEEE ..... closed", "0 E . open")
}

// Scenario A03.
func TestTheRateOfAHundredCallsOpensExactlyAtTheThreshold(t *testing.T) {
	c := breaker.Config{FailureRate: 0.57, LastCalls: 100, MinCalls: 100}
	for failures, want := range map[int]breaker.State{56: breaker.Closed, 57: breaker.Open} {
		s := runScript(t, c)
		for i := range 100 {
			s.do(fmt.Sprintf("0 %c . %s", "ES"[min(max(i-failures+1, 0), 1)], map[bool]string{true: "open", false: "closed"}[i == 99 && want == breaker.Open]))
		}
		require.Equal(t, want, s.b.StateAt(s.now))
	}
}

// Scenarios A04 and A05.
func TestMinCallsAndTheFullRate(t *testing.T) {
	runScript(t, breaker.Config{MinCalls: 4, FailureRate: 0.01}, "0 EEE ... closed", "20 EEE ... closed")
	runScript(t, breaker.Config{MinCalls: 3, FailureRate: 1}, "0 EE .. closed", "0 E . open")
}

// Scenarios A13 to A15.
func TestRowsOutlastTheWindowAndOldSuccessesMaskNothing(t *testing.T) {
	c := breaker.Config{ConsecutiveFailures: 3, Cooldown: time.Minute}
	runScript(t, c, "0 E . closed", "60 E . closed", "120 E . open") // wider apart than the window
	runScript(t, breaker.Config{MinCalls: 2}, "0 SSSSS ..... closed", "10.5 E . closed")
	s := runScript(t, breaker.Config{FailureRun: breaker.Off})
	for range 1000 {
		s.call('S')
	}
	s.now = s.now.Add(24 * time.Hour)
	s.do("0 EEEEEEEEEEEEEEEEEEEE .................... open")
}

// Scenario A37.
func TestSlowSuccessesOpen(t *testing.T) {
	c := breaker.Config{SlowCall: time.Second, SlowRate: 0.4, MinCalls: 5, FailureRate: breaker.Off, Window: time.Minute}
	runScript(t, c, "0 ssSS .... closed", "4 S . open")
	c.SlowRate = 0.41
	runScript(t, c, "0 ssSS .... closed", "4 S . closed")
	c.SlowRate = breaker.Off
	runScript(t, c, "0 ssssss ...... closed")
}

// Scenario B01.
func TestASuccessCanTrip(t *testing.T) {
	s := runScript(t, configWithoutSlow(),
		"0 E . closed -1 0 1 1 0", "0 E . closed -1 0 2 2 0", "0 E . closed -1 0 3 3 0", "0 S . closed -1 1 4 3 0",
		"0 S . open 60 2 5 3 0", "0 S r open 60 2 5 3 1")
	require.Len(t, s.changes(), 1)
}

// Scenario B02.
func TestItOpensAtTheThreshold(t *testing.T) {
	runScript(t, configWithoutSlow(), "0 S . closed", "1 S . closed", "2 S . closed", "3 E . closed", "4 E . closed 40 3 5 2 0", "5 - - closed", "5 E . open 50 3 6 3 0")
}

// Scenarios B03 and B04.
func TestSlowCallsTrip(t *testing.T) {
	c := scenarioConfig()
	c.Window, c.Buckets = time.Minute, 60
	s := runScript(t, c, "0 e . closed", "0 s . closed", "0 E . closed", "0 S . closed", "0 s . open")
	s.requireSlow(3)
	require.Equal(t, 0.6, s.b.CountsAt(s.now).SlowRate())
	require.Equal(t, "slow rate 60% of 5 calls, limit 50%", s.told.changes()[0].Reason)
}

// Scenario B38.
func TestLastCallsBoundsMinCalls(t *testing.T) {
	// judged after five
	s := runScript(t, breaker.Config{LastCalls: 5, MinCalls: 6}, "0 EEEE .... closed", "0 E . open")
	require.Equal(t, "failure rate 100% of 5 calls, limit 50%", s.told.changes()[0].Reason)
	require.NoError(t, breaker.Config{Window: 10 * time.Second, MinCalls: 100}.Validate())
	require.Error(t, breaker.Config{FailureRate: 1.01}.Validate())
}

// Scenario B55.
func TestTheRateIsJudgedFromMinCallsOn(t *testing.T) {
	for _, c := range []struct {
		calls, least  int
		failed, limit float64
		want          breaker.State
	}{
		{10, 10, 0, .1, breaker.Closed},
		{10, 10, .1, .1, breaker.Open},
		{10, 10, .2, .1, breaker.Open},
		{11, 10, .2, .1, breaker.Open},
		{9, 10, .1, .1, breaker.Closed},
	} {
		b := breaker.New("b", breaker.Config{MinCalls: c.least, FailureRate: c.limit})
		failures := int(math.Round(float64(c.calls) * c.failed))
		for i := range c.calls {
			if i < c.calls-failures {
				_ = b.Run(bg(), succeed)
			} else {
				_ = b.Run(bg(), fail)
			}
		}
		require.Equal(t, c.want, b.State(), "%+v", c)
	}
}

// Scenario B67.
func TestThreeFailuresThenSevenRefusals(t *testing.T) {
	runScript(t, breaker.Config{FailureRate: 0.1, Window: time.Second, MinCalls: 3}, "0 EEEEEEEEEE ...rrrrrrr open")
}

// Scenario B72.
func TestARareFailureDoesNotOpen(t *testing.T) {
	c := breaker.Config{Recovery: breaker.Off, FailureRate: 0.2, Window: 20 * time.Second, Buckets: 20, MinCalls: 1, Cooldown: 10 * time.Second, Probes: 1}
	runScript(t, c, "0 SE .. open", "0 S r open", "0.1 S r open", "5 S r open", "10 E . open", "20 S . closed", "20 SSSSSS ...... closed", "20 E . closed")
	slow := breaker.Config{Recovery: breaker.Off, SlowCall: 10 * time.Millisecond, SlowRate: 1, FailureRate: breaker.Off, MinCalls: 3, Cooldown: 5 * time.Second}
	s := runScript(t, slow, "0 sss ... open", "3.1 S r open", "4 S r open")
	s.do("8.1 S . half_open")
}

// Scenario B74.
func TestFailuresInARowOpen(t *testing.T) {
	c := breaker.Config{Recovery: breaker.Off, FailureRate: breaker.Off, ConsecutiveFailures: 3, Cooldown: 5 * time.Second, Probes: 1}
	s := runScript(t, c,
		"0 EESEE ..... closed", "0 E . open", "5 E . open", "10 I . half_open", "10 S . closed", "10 EE .. closed", "10 E . open")
	require.Equal(t, "3 failures in a row, limit 3", s.told.changes()[0].Reason)
	require.Equal(t, "a probe failed", s.told.changes()[2].Reason)

	// five, not four
	runScript(t, breaker.Config{Recovery: breaker.Off, MinCalls: 5, FailureRate: 1}, "0 EEEE .... closed", "0 E . open")
}

// Scenario B76.
func TestRowsAndRatesTogether(t *testing.T) {
	c := breaker.Config{Recovery: breaker.Off, FailureRate: 0.5, ConsecutiveFailures: 3, MinCalls: 3, Cooldown: time.Second, CooldownFactor: 2, Probes: 1}
	s := runScript(t, c, "0 EEE ... open") // both at once
	require.Contains(t, s.told.changes()[0].Reason, "failure rate 100% of 3 calls")
	s.do("1 E . open", "2.9 S r open", "3 S . closed") // the wait grew
	// after a long idle time three calls are needed again
	s.do("203 SE .. closed", "203 E . open")
	s.do("204 A . half_open", "209 b . open") // a probe slower than the wait counts
	require.Error(t, breaker.Config{Recovery: breaker.Off, ConsecutiveFailures: -2}.Validate())
}

// Scenario B89.
func TestNoRateIsRounded(t *testing.T) {
	runScript(t, breaker.Config{FailureRate: 1, MinCalls: 4}, "0 EEEE .... open")
	b := breaker.New("b", breaker.Config{MinCalls: 1000})
	run(t, b, 496, fail)
	run(t, b, 504, succeed)
	require.Equal(t, breaker.Closed, b.State(), "49.6 % is not 50 %")
}

// Scenario A12. In another breaker calls slower than the window are never counted.
func TestFailuresSlowerThanTheWindowStillTrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("b", breaker.Config{Window: time.Second})
		for range 20 {
			go func() {
				_ = b.Run(bg(), func(context.Context) error { time.Sleep(time.Minute); return errDown })
			}()
		}
		time.Sleep(time.Minute + 1)
		require.Equal(t, breaker.Open, b.State())
	})
}

// Another breaker opens only if a count is equal to its threshold, not if it is above.
func TestThresholdsThatWereJumpedOver(t *testing.T) {
	c := breaker.Config{FailureRate: breaker.Off, ConsecutiveFailures: 10}
	s := runScript(t, c, "0 EEEEEEEE ........ closed")
	c.ConsecutiveFailures = 5 // the count is higher already
	require.NoError(t, s.b.ReconfigureAt(s.now, c))
	s.do("0 E . open")
}

// In another breaker zero cannot be configured. Here Off and thresholds of 1 can.
func TestZeroAndOffAreDifferent(t *testing.T) {
	runScript(t, breaker.Config{Recovery: breaker.Off, MinCalls: 1, FailureRate: 1, Cooldown: breaker.Off, Probes: 1}, "0 E . half_open", "0 E . half_open", "0 S . closed")
	runScript(t, breaker.Config{Recovery: breaker.Off, MinCalls: 1, FailureRate: breaker.Off, ConsecutiveFailures: 1}, "0 E . open")
}

// Many calls that reach the threshold at once open the breaker once.
func TestItOpensOnce(t *testing.T) {
	for range 300 {
		var changes atomic.Int64
		b := breaker.New("b", breaker.Config{MinCalls: 2, Cooldown: time.Hour, OnChange: func(breaker.Change) { changes.Add(1) }})
		var ready, wg sync.WaitGroup
		ready.Add(8)
		for _, p := range holdPermits(t, b, 8) {
			wg.Go(func() { ready.Done(); ready.Wait(); p.Record(bg(), nil, breaker.Failure) })
		}
		wg.Wait()
		require.Equal(t, int64(1), changes.Load())
		require.Equal(t, int64(8), b.Totals().Failures+b.StatsNow().Late)
	}
}

func TestTripAndSharedCountsAreCalled(t *testing.T) {
	var asked []window.Counts
	fleet := window.Counts{Successes: 100}
	var told recorder
	b := breaker.New("b", told.attachTo(breaker.Config{
		FailureRate: 0.5, MinCalls: 50,
		Trip: func(c window.Counts) (string, bool) {
			asked = append(asked, c)
			return fmt.Sprintf("%d failures", c.Failures), c.Failures >= 3
		},
		SharedCounts: func() window.Counts { return fleet },
	}))
	run(t, b, 1, succeed)
	run(t, b, 2, fail)
	require.Equal(t, breaker.Closed, b.State())
	require.Equal(t, []int64{0, 1, 2}, []int64{asked[0].Failures, asked[1].Failures, asked[2].Failures})
	run(t, b, 1, fail)
	require.Equal(t, "3 failures", told.changes()[0].Reason)
	require.Equal(t, "calls", told.changes()[0].Origin())

	b.Reset()
	fleet.Failures = 200
	run(t, b, 1, succeed)
	last := told.changes()[2]
	require.Equal(t, "failure rate 66.7% of 300 calls, limit 50%, by shared counts", last.Reason)
	require.Equal(t, "shared_counts", last.Origin())
}
