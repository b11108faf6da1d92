package breaker_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
)

// Tests named TestScenarioA are the breaker scenarios of part A of the project's list, with their
// numbers.

func TestScenarioA01A02_FreshAndSixInARow(t *testing.T) {
	c := breaker.Config{FailureRate: breaker.Off, ConsecutiveFailures: 6}
	runScript(t, c, "0 - - closed -1 0 0 0 0", "0 EEEEE ..... closed", "0 S . closed", "0 EEEEE ..... closed", "0 E . open")
}

func TestScenarioA03_AtTheThresholdAndOneBelow(t *testing.T) {
	c := breaker.Config{FailureRate: 0.57, LastCalls: 100, MinCalls: 100}
	for failures, want := range map[int]breaker.State{56: breaker.Closed, 57: breaker.Open} {
		s := runScript(t, c)
		for i := range 100 {
			s.do(fmt.Sprintf("0 %c . %s", "ES"[min(max(i-failures+1, 0), 1)], map[bool]string{true: "open", false: "closed"}[i == 99 && want == breaker.Open]))
		}
		require.Equal(t, want, s.b.StateAt(s.now))
	}
}

func TestScenarioA04A05_MinCallsAndTheFullRate(t *testing.T) {
	runScript(t, breaker.Config{MinCalls: 4, FailureRate: 0.01}, "0 EEE ... closed", "20 EEE ... closed")
	runScript(t, breaker.Config{MinCalls: 3, FailureRate: 1}, "0 EE .. closed", "0 E . open")
}

func TestScenarioA06_AnOldBucketLeavesWithItsContent(t *testing.T) {
	c := breaker.Config{Window: 3 * time.Second, Buckets: 3, FailureRate: 1, MinCalls: 100}
	runScript(t, c, "0 EE .. closed", "1 SSS ... closed", "2 E . closed -1 3 6 3 0", "3 - - closed -1 3 4 1 0", "4 - - closed -1 0 1 1 0", "5 - - closed -1 0 0 0 0")
}

func TestScenarioA07_ABurstAcrossTheWindowsEdge(t *testing.T) {
	b := breaker.NewAt("b", breaker.Config{}, t0)
	at := func(ms int) time.Time { return t0.Add(time.Duration(ms) * time.Millisecond) }
	for i := range 10_900 {
		p, err := b.AllowAt(at(9999))
		require.NoError(t, err)
		o, end := breaker.Success, at(9999)
		if i >= 10_000 {
			o, end = breaker.Failure, at(10_000)
		}
		p.RecordAt(end, o)
	}
	require.Equal(t, breaker.Closed, b.StateAt(at(10_000)))
	require.InDelta(t, 0.0826, b.CountsAt(at(10_000)).FailureRate(), 1e-4)
}

func TestScenarioA08_IdleForLongSeesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("b", breaker.Config{FailureRun: breaker.Off})
		run(t, b, 19, fail)
		time.Sleep(time.Hour)
		require.Zero(t, withoutStreak(b.StatsNow().Counts))
		require.Zero(t, withoutStreak(b.Counts()))
		run(t, b, 1, fail)
		require.Equal(t, breaker.Closed, b.State())
	})
}

func TestScenarioA09_ManyFirstWritersAfterAnIdleTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("b", breaker.Config{FailureRate: breaker.Off})
		for round := range 50 {
			time.Sleep(time.Minute)
			var wg sync.WaitGroup
			for range 20 {
				wg.Go(func() { _ = b.Run(bg(), fail) })
			}
			wg.Wait()
			require.Equal(t, int64(20), b.Counts().Failures)
			require.Equal(t, int64(20*(round+1)), b.Totals().Failures)
		}
	})
}

func TestScenarioA11_TimesBeforeTheStart(t *testing.T) {
	s := runScript(t, breaker.Config{MinCalls: 5}, "0 S . closed -1 1 1 0 0")
	s.now = t0.Add(-time.Hour)
	s.do("-3600 SE .. closed -1 2 3 1 0")
	s.now = t0.Add(-100 * 365 * 24 * time.Hour)
	require.Equal(t, "..", s.call('S')+s.call('E'))
	s.do("0 E . open 50 3 6 3 0")
}

func TestScenarioA13A14A15_RowsAndMasks(t *testing.T) {
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
