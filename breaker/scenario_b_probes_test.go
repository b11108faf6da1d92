package breaker_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
)

func TestScenarioB09B10B11_FourProbes(t *testing.T) {
	s := runScript(t, configWithoutSlow(), "0 EEEEE ..... open", "5 AAAASS ....rr half_open -1 0 0 0 2")
	s.b.OpenForAt(s.now, 0)
	s.do("5 AAAAS ....r half_open -1 0 0 0 1") // four new probes
	s.held = s.held[4:]
	// one slot is released, so the next probe passes
	s.do("5 S r half_open", "5 i . half_open", "5 A . half_open")
}

func TestScenarioB12_ProbesThatFail(t *testing.T) {
	runScript(t, configWithoutSlow(), "0 EEEEE ..... open", "5 EES ... half_open", "5 E . open 75 1 4 3 0")
}

func TestScenarioB13_ProbesThatAreSlow(t *testing.T) {
	s := runScript(t, scenarioConfig(), "0 EEEEE ..... open", "5 sss ... half_open", "5 S . open 0 4 4 0 0")
	s.requireSlow(3)
}

func TestScenarioB14_ProbesThatSucceed(t *testing.T) {
	runScript(t, configWithoutSlow(), "0 EEEEE ..... open", "5 ESSS .... closed -1 0 0 0 0", "5 S . closed -1 1 1 0 0")
}

func TestScenarioB15B16_IgnoredProbes(t *testing.T) {
	runScript(t, configWithoutSlow(), "0 EEEEE ..... open", "5 SSS ... half_open -1 3 3 0 0", "5 I . half_open -1 3 3 0 0", "5 E . closed")
	runScript(t, configWithoutSlow(),
		"0 EEEEE ..... open", "5 IIII .... half_open -1 0 0 0 0", "5 SSS ... half_open -1 3 3 0 0", "5 S . closed")
}

func TestScenarioB27_HalfOpenWithoutAVerdict(t *testing.T) {
	c := configWithoutSlow()
	c.HalfOpenTimeout = time.Second
	// there is no call
	s := runScript(t, c, "0 EEEEE ..... open", "5.5 - - half_open", "3600 - - half_open")
	s.do("3600 A . half_open", "3600.999 - - half_open", "3601 - - open", "3605.999 S r open 100 0 5 5 1", "3606.2 SSS ... half_open", "3606.9 S . closed")
	var at []time.Duration
	for _, change := range s.told.changes() {
		at = append(at, change.At.Sub(t0))
	}
	require.Equal(t, []time.Duration{0, secondsOf(5), secondsOf(3601), secondsOf(3606), secondsOf(3606.9)}, at)
	s = runScript(t, c, "0 EEEEE ..... open", "5.5 A . half_open", "6.5 - - open", "11.5 - - half_open", "11.6 g ! half_open")
	require.Equal(t, []breaker.State{breaker.Open, breaker.HalfOpen, breaker.Open, breaker.HalfOpen}, s.changes())
	// another round
	runScript(t, c, "0 EEEEE ..... open", "5.5 SE .. half_open -1 1 2 1 0", "11.5 - - half_open -1 0 0 0 0")
}

func TestScenarioB30_NoTimerForHalfOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // a timer left would keep the bubble's clock going
		b := breaker.New("b", breaker.Config{Cooldown: 2 * time.Second})
		open(t, b)
		b.Force(breaker.ForcedOpen)
		time.Sleep(3 * time.Second)
		require.Equal(t, breaker.ForcedOpen, b.State())
		b.Release()
		require.Equal(t, breaker.HalfOpen, b.State(), "the cooldown went on underneath")
	})
}

func TestScenarioB58_TheSecondWaitsForTheProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newHalfOpen(t, breaker.Config{Probes: 1, ProbeTimeout: 3 * time.Second})
		holdPermits(t, b, 1)
		var e *breaker.OpenError
		require.ErrorAs(t, b.Run(bg(), succeed), &e)
		require.Equal(t, time.Now().Add(3*time.Second), e.Until, "at the latest")
		require.Less(t, e.RetryAfter(), time.Second)
	})
}

func TestScenarioB70_OneProbePerWindow(t *testing.T) {
	c := breaker.Config{Recovery: breaker.Off, MinCalls: 5, Probes: 1, Cooldown: 5 * time.Second, Window: 10 * time.Second}
	runScript(t, c, "0 EEEE .... closed")
	s := runScript(t, c, "0 EEEEE ..... open", "5 AS .r half_open", "5 b . open", "10 AS .r half_open", "10 b . open",
		"15 A . half_open") // this probe never has a result
	s.do("115 S . closed -1 0 0 0 0", "115 E . closed -1 0 1 1 0")
}

func TestScenarioB83B84B85_ProbesThatEndOddly(t *testing.T) {
	c := breaker.Config{Recovery: breaker.Off, MinCalls: 5, Probes: 1, Cooldown: 5 * time.Second, ProbeTimeout: 2 * time.Second}
	// the caller gave up
	s := runScript(t, c, "0 EEEEE ..... open", "5 A . half_open", "5 i . half_open -1 0 0 0 0")
	// never reported in time
	s.do("5 A . half_open", "6.9 S r half_open", "7 S . closed", "7 b ! closed -1 0 0 0 0")
	s.do("7 A . closed")
	s.b.ResetAt(s.now)
	s.do("7 b ! closed -1 0 0 0 0") // reported after a reset
}

func TestScenarioB88_CallsThatHang(t *testing.T) {
	c := breaker.Config{Recovery: breaker.Off, SlowCall: time.Second, HungCalls: true, MinCalls: 20}
	s := runScript(t, c, "0 AAAAAAAAAAAAAAAAAAAA .................... closed", "0.9 S . closed", "3.1 S r open")
	require.Equal(t, "slow rate 95.2% of 21 calls, limit 50%, 20 of them still in flight", s.told.changes()[0].Reason)
	s.do("4 gggggggggggggggggggg !!!!!!!!!!!!!!!!!!!! open")
	s.do("8.1 SSS ... closed", "9 SSSSSSSSSSSSSSSSSSSSSSSSS ......................... closed", "20 S . closed")

	c.HungCalls = false
	runScript(t, c, "0 AAAAAAAAAAAAAAAAAAAA .................... closed", "3.1 S . closed")
}

func TestScenarioB90_FewerCallsNeededThanProbes(t *testing.T) {
	c := breaker.Config{Recovery: breaker.Off, MinCalls: 2, Probes: 4, Cooldown: 5 * time.Second}
	runScript(t, c, "0 EE .. open", "5 AAAAS ....r half_open", "5 b . half_open", "5 b . open")
	runScript(t, c, "0 EE .. open", "5 SS .. closed")
}
