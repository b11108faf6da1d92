package breaker_test

import (
	"io"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
)

// Tests named TestScenarioB are the breaker scenarios of part B of the project's list, with their
// numbers. They check what the tests of other breakers check. From 87 on, they check what no other
// breaker passes.

// scenarioConfig is the config of most of the first scenarios.
func scenarioConfig() breaker.Config {
	return breaker.Config{
		FailureRate: 0.5, SlowRate: 0.5, SlowCall: 4 * time.Second, Window: 20 * time.Second, Buckets: 20,
		MinCalls: 5, Probes: 4, Cooldown: 5 * time.Second, Recovery: breaker.Off,
	}
}

// configWithoutSlow is scenarioConfig with calls that cannot be slow.
func configWithoutSlow() breaker.Config {
	c := scenarioConfig()
	c.SlowCall, c.SlowRate = 0, 0
	return c
}

func TestScenarioB01_ASuccessTrips(t *testing.T) {
	s := runScript(t, configWithoutSlow(),
		"0 E . closed -1 0 1 1 0", "0 E . closed -1 0 2 2 0", "0 E . closed -1 0 3 3 0", "0 S . closed -1 1 4 3 0",
		"0 S . open 60 2 5 3 0", "0 S r open 60 2 5 3 1")
	require.Len(t, s.changes(), 1)
}

func TestScenarioB02_AtTheThreshold(t *testing.T) {
	runScript(t, configWithoutSlow(), "0 S . closed", "1 S . closed", "2 S . closed", "3 E . closed", "4 E . closed 40 3 5 2 0", "5 - - closed", "5 E . open 50 3 6 3 0")
}

func TestScenarioB03B04_SlowCallsTrip(t *testing.T) {
	c := scenarioConfig()
	c.Window, c.Buckets = time.Minute, 60
	s := runScript(t, c, "0 e . closed", "0 s . closed", "0 E . closed", "0 S . closed", "0 s . open")
	s.requireSlow(3)
	require.Equal(t, 0.6, s.b.CountsAt(s.now).SlowRate())
	require.Equal(t, "slow rate 60% of 5 calls, limit 50%", s.told.changes()[0].Reason)
}

func TestScenarioB29_TheLastTenCalls(t *testing.T) {
	c := breaker.Config{LastCalls: 10, MinCalls: 10, FailureRate: 0.5}
	s := runScript(t, c)
	s.b.ForceAt(s.now, breaker.Shadow) // to see that the window continues
	s.do("0 SSEE .... shadow -1 2 4 2 0", "0 EEEESSSS ........ shadow 60 4 10 6 0", "0 SSS ... shadow 30 7 10 3 0")
}

func TestScenarioB37_OneFailureOfTwo(t *testing.T) {
	b := breaker.New("b", breaker.Config{LastCalls: 2, Classify: breaker.Ignore(io.EOF)})
	run(t, b, 1, failWith(io.EOF))
	run(t, b, 1, failWith(&net.OpError{Op: "dial", Err: errDown}))
	require.Equal(t, breaker.Closed, b.State())
	require.Equal(t, int64(1), b.Counts().Failures)
	require.Equal(t, int64(1), b.Counts().Calls())
}

func TestScenarioB38_Configs(t *testing.T) {
	// judged after five
	s := runScript(t, breaker.Config{LastCalls: 5, MinCalls: 6}, "0 EEEE .... closed", "0 E . open")
	require.Equal(t, "failure rate 100% of 5 calls, limit 50%", s.told.changes()[0].Reason)
	require.NoError(t, breaker.Config{Window: 10 * time.Second, MinCalls: 100}.Validate())
	require.Error(t, breaker.Config{FailureRate: 1.01}.Validate())
}

func TestScenarioB55_ShouldBreak(t *testing.T) {
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

func TestScenarioB67_ThreeFailuresThenSevenRefusals(t *testing.T) {
	runScript(t, breaker.Config{FailureRate: 0.1, Window: time.Second, MinCalls: 3}, "0 EEEEEEEEEE ...rrrrrrr open")
}

func TestScenarioB72_OneFailureOfSeven(t *testing.T) {
	c := breaker.Config{Recovery: breaker.Off, FailureRate: 0.2, Window: 20 * time.Second, Buckets: 20, MinCalls: 1, Cooldown: 10 * time.Second, Probes: 1}
	runScript(t, c, "0 SE .. open", "0 S r open", "0.1 S r open", "5 S r open", "10 E . open", "20 S . closed", "20 SSSSSS ...... closed", "20 E . closed")
	slow := breaker.Config{Recovery: breaker.Off, SlowCall: 10 * time.Millisecond, SlowRate: 1, FailureRate: breaker.Off, MinCalls: 3, Cooldown: 5 * time.Second}
	s := runScript(t, slow, "0 sss ... open", "3.1 S r open", "4 S r open")
	s.do("8.1 S . half_open")
}

func TestScenarioB74_FailuresInARow(t *testing.T) {
	c := breaker.Config{Recovery: breaker.Off, FailureRate: breaker.Off, ConsecutiveFailures: 3, Cooldown: 5 * time.Second, Probes: 1}
	s := runScript(t, c,
		"0 EESEE ..... closed", "0 E . open", "5 E . open", "10 I . half_open", "10 S . closed", "10 EE .. closed", "10 E . open")
	require.Equal(t, "3 failures in a row, limit 3", s.told.changes()[0].Reason)
	require.Equal(t, "a probe failed", s.told.changes()[2].Reason)

	// five, not four
	runScript(t, breaker.Config{Recovery: breaker.Off, MinCalls: 5, FailureRate: 1}, "0 EEEE .... closed", "0 E . open")
}

func TestScenarioB76_RowsAndRates(t *testing.T) {
	c := breaker.Config{Recovery: breaker.Off, FailureRate: 0.5, ConsecutiveFailures: 3, MinCalls: 3, Cooldown: time.Second, CooldownFactor: 2, Probes: 1}
	s := runScript(t, c, "0 EEE ... open") // both at once
	require.Contains(t, s.told.changes()[0].Reason, "failure rate 100% of 3 calls")
	s.do("1 E . open", "2.9 S r open", "3 S . closed") // the wait grew
	// after a long idle time three calls are needed again
	s.do("203 SE .. closed", "203 E . open")
	s.do("204 A . half_open", "209 b . open") // a probe slower than the wait counts
	require.Error(t, breaker.Config{Recovery: breaker.Off, ConsecutiveFailures: -2}.Validate())
}

func TestScenarioB89_NoRounding(t *testing.T) {
	runScript(t, breaker.Config{FailureRate: 1, MinCalls: 4}, "0 EEEE .... open")
	b := breaker.New("b", breaker.Config{MinCalls: 1000})
	run(t, b, 496, fail)
	run(t, b, 504, succeed)
	require.Equal(t, breaker.Closed, b.State(), "49.6 % is not 50 %")
}

func TestScenarioB87_ExactlyNOfAHundred(t *testing.T) {
	b := breaker.New("b", breaker.Config{MinCalls: 1, Cooldown: breaker.Off, Probes: 7})
	run(t, b, 1, fail)
	var allowed atomic.Int64
	var ready, wg sync.WaitGroup
	ready.Add(100)
	for range 100 {
		wg.Go(func() {
			ready.Done()
			ready.Wait()
			if _, err := b.Allow(); err == nil {
				allowed.Add(1)
			}
		})
	}
	wg.Wait()
	require.Equal(t, int64(7), allowed.Load())
	require.Equal(t, int64(93), b.Totals().Refused)
}
