package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/window"
)

// The tests of this file are the breaker scenarios of part B of the project's list, with their numbers: what
// the tests of other breakers check, and at the end what no other breaker passes.

// configR is what most of the first scenarios use.
func configR() breaker.Config {
	return breaker.Config{
		FailureRate: 0.5, SlowRate: 0.5, SlowCall: 4 * time.Second, Window: 20 * time.Second, Buckets: 20,
		MinCalls: 5, Probes: 4, Cooldown: 5 * time.Second,
	}
}

// fast is configR with calls that cannot be slow.
func fast() breaker.Config {
	c := configR()
	c.SlowCall, c.SlowRate = 0, 0
	return c
}

func TestScenarioB01_ASuccessTrips(t *testing.T) {
	s := play(t, fast(),
		"0 E . closed -1 0 1 1 0", "0 E . closed -1 0 2 2 0", "0 E . closed -1 0 3 3 0", "0 S . closed -1 1 4 3 0",
		"0 S . open 60 2 5 3 0", "0 S r open 60 2 5 3 1")
	require.Len(t, s.changes(), 1)
}

func TestScenarioB02_AtTheThreshold(t *testing.T) {
	play(t, fast(), "0 S . closed", "1 S . closed", "2 S . closed", "3 E . closed", "4 E . closed 40 3 5 2 0", "5 - - closed", "5 E . open 50 3 6 3 0")
}

func TestScenarioB03B04_SlowCallsTrip(t *testing.T) {
	c := configR()
	c.Window, c.Buckets = time.Minute, 60
	s := play(t, c, "0 e . closed", "0 s . closed", "0 E . closed", "0 S . closed", "0 s . open")
	s.slow(3)
	require.Equal(t, 0.6, s.b.CountsAt(s.now).SlowRate())
	require.Equal(t, "slow rate 60% of 5 calls, limit 50%", s.told.changes()[0].Reason)
}

func TestScenarioB05_OpenedByHand(t *testing.T) {
	s := play(t, fast())
	s.b.OpenForAt(s.now, sec(5))
	s.do("0 S r open", "3 S r open -1 0 0 0 2", "6 A . half_open -1 0 0 0 0")
}

func TestScenarioB06_OpenForTwoHours(t *testing.T) {
	s := play(t, fast())
	s.b.OpenForAt(s.now, 2*time.Hour)
	s.do("0 S r open", "3600 S r open -1 0 0 0 2", "7201 A . half_open")
}

func TestScenarioB07_OpenForHalfAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("b", breaker.Config{})
		b.OpenFor(30 * time.Minute)
		refused(t, b)
		time.Sleep(15 * time.Minute)
		refused(t, b)
		time.Sleep(15*time.Minute + time.Second)
		run(t, b, 1, succeed)
		require.Equal(t, breaker.HalfOpen, b.State())
	})
}

func TestScenarioB08_CooldownsThatGrow(t *testing.T) {
	c := fast()
	c.CooldownFactor = 1.5
	s := play(t, c, "0 EEEEE ..... open", "3 S r open", "6 EEEE .... open")
	s.do("12 S r open", "17 A . half_open") // 7.5 s after 6 s
}

func TestScenarioB09B10B11_FourProbes(t *testing.T) {
	s := play(t, fast(), "0 EEEEE ..... open", "5 AAAASS ....rr half_open -1 0 0 0 2")
	s.b.OpenForAt(s.now, 0)
	s.do("5 AAAAS ....r half_open -1 0 0 0 1") // a fresh four
	s.held = s.held[4:]
	s.do("5 S r half_open", "5 i . half_open", "5 A . half_open") // one released: the next is let through
}

func TestScenarioB12_ProbesThatFail(t *testing.T) {
	play(t, fast(), "0 EEEEE ..... open", "5 EES ... half_open", "5 E . open 75 1 4 3 0")
}

func TestScenarioB13_ProbesThatAreSlow(t *testing.T) {
	s := play(t, configR(), "0 EEEEE ..... open", "5 sss ... half_open", "5 S . open 0 4 4 0 0")
	s.slow(3)
}

func TestScenarioB14_ProbesThatSucceed(t *testing.T) {
	play(t, fast(), "0 EEEEE ..... open", "5 ESSS .... closed -1 0 0 0 0", "5 S . closed -1 1 1 0 0")
}

func TestScenarioB15B16_IgnoredProbes(t *testing.T) {
	play(t, fast(), "0 EEEEE ..... open", "5 SSS ... half_open -1 3 3 0 0", "5 I . half_open -1 3 3 0 0", "5 E . closed")
	play(t, fast(), "0 EEEEE ..... open", "5 IIII .... half_open -1 0 0 0 0", "5 SSS ... half_open -1 3 3 0 0", "5 S . closed")
}

func TestScenarioB17B18B19_Reset(t *testing.T) {
	s := play(t, fast(), "0 SE .. closed -1 1 2 1 0")
	s.b.ResetAt(s.now)
	s.do("0 - - closed -1 0 0 0 0")
	require.Empty(t, s.changes(), "the same state again is no change")
	s.do("0 EEEEE ..... open")
	s.b.ResetAt(s.now)
	s.do("0 SS .. closed -1 2 2 0 0")
	s.b.ResetAt(s.now)
	s.do("0 - - closed -1 0 0 0 0")
}

func TestScenarioB20_Disabled(t *testing.T) {
	s := play(t, fast())
	s.b.ForceAt(s.now, breaker.Disabled)
	s.do("0 EEEES !!!!! disabled -1 0 0 0 0") // none counts
	require.Equal(t, []breaker.State{breaker.Disabled}, s.changes())
	require.Zero(t, s.b.Totals())
	require.Zero(t, s.b.StatsNow().Late)
}

func TestScenarioB21_ForcedOpen(t *testing.T) {
	s := play(t, fast())
	s.b.ForceAt(s.now, breaker.ForcedOpen)
	s.do("0 S r forced_open", "6 S r forced_open -1 0 0 0 2", "100000 S r forced_open")
	_, err := s.b.AllowAt(s.now)
	require.EqualError(t, err, `breaker "b" is forced open`)
	require.ErrorIs(t, s.b.CheckAt(s.now), breaker.ErrOpen)
	require.True(t, s.b.Tripped())
}

func TestScenarioB22B23B24_Shadow(t *testing.T) {
	var told []string
	c := configR()
	c.OnChange = func(c breaker.Change) { told = append(told, c.String()) }
	s := play(t, c, "0 SS .. closed")
	s.b.ForceAt(s.now, breaker.Shadow)
	s.do("0 - - shadow -1 0 0 0 0", "0 EEESS ..... shadow 60 2 5 3 0", "0 E . shadow 66.7 2 6 4 0")
	require.Equal(t, []string{
		"closed to shadow: forced",
		"shadow to shadow: would open: failure rate 60% of 5 calls, limit 50%",
	}, told)
	stats := s.b.StatsAt(s.now)
	require.Equal(t, int64(1), stats.ShadowOpened)
	require.Equal(t, int64(1), stats.ShadowRefused, "one call came while it would have been open")

	c = configR()
	c.Window, c.Buckets = time.Minute, 60
	s = play(t, c)
	s.b.ForceAt(s.now, breaker.Shadow)
	s.do("0 eeeee ..... shadow")
	require.Equal(t, int64(1), s.b.StatsAt(s.now).ShadowOpened)
}

func TestScenarioB25_NoHalfOpenByForce(t *testing.T) {
	s := play(t, fast())
	for _, state := range []breaker.State{breaker.Closed, breaker.Open, breaker.HalfOpen} {
		require.PanicsWithValue(t, fmt.Sprintf("breaker: %q is not an override", state), func() { s.b.Force(state) })
	}
	require.Panics(t, func() { s.b.Force(breaker.State("trial")) })
	s.do("0 - - closed")
}

func TestScenarioB26_TheSameStateAgainIsNoChange(t *testing.T) {
	s := play(t, fast())
	for range 2 {
		s.b.OpenForAt(s.now, time.Hour)
	}
	for _, state := range []breaker.State{breaker.Disabled, breaker.Shadow, breaker.ForcedClosed, breaker.ForcedOpen} {
		s.b.ForceAt(s.now, state)
		s.b.ForceAt(s.now, state)
	}
	for range 2 {
		s.b.ReleaseAt(s.now)
		s.b.ResetAt(s.now)
	}
	require.Equal(t, []breaker.State{
		breaker.Open, breaker.Disabled, breaker.Shadow, breaker.ForcedClosed, breaker.ForcedOpen, breaker.Open, breaker.Closed,
	}, s.changes())
}

func TestScenarioB27_HalfOpenWithoutAVerdict(t *testing.T) {
	c := fast()
	c.HalfOpenTimeout = time.Second
	s := play(t, c, "0 EEEEE ..... open", "5.5 - - half_open", "3600 - - half_open") // nobody calls
	s.do("3600 A . half_open", "3600.999 - - half_open", "3601 - - open", "3605.999 S r open 100 0 5 5 1", "3606.2 SSS ... half_open", "3606.9 S . closed")
	var at []time.Duration
	for _, change := range s.told.changes() {
		at = append(at, change.At.Sub(t0))
	}
	require.Equal(t, []time.Duration{0, sec(5), sec(3601), sec(3606), sec(3606.9)}, at)
	s = play(t, c, "0 EEEEE ..... open", "5.5 A . half_open", "6.5 - - open", "11.5 - - half_open", "11.6 g ! half_open")
	require.Equal(t, []breaker.State{breaker.Open, breaker.HalfOpen, breaker.Open, breaker.HalfOpen}, s.changes())
	play(t, c, "0 EEEEE ..... open", "5.5 SE .. half_open -1 1 2 1 0", "11.5 - - half_open -1 0 0 0 0") // another round
}

func TestScenarioB28_InitialStates(t *testing.T) {
	for state, want := range map[breaker.State]string{
		breaker.Closed: "0 S . closed", breaker.Open: "0 S r open", breaker.ForcedOpen: "0 S r forced_open",
		breaker.ForcedClosed: "0 S . forced_closed", breaker.Shadow: "0 S . shadow", breaker.Disabled: "0 S ! disabled",
	} {
		c := fast()
		c.Initial = state
		s := play(t, c, want)
		require.Empty(t, s.changes())
		s.b.ReleaseAt(s.now)
		if state != breaker.Open {
			require.Equal(t, breaker.Closed, s.b.StateAt(s.now))
		}
	}
	c := fast()
	c.Initial = breaker.Open
	play(t, c, "4.9 S r open", "5 SSSS .... closed")
}

func TestScenarioB29_TheLastTenCalls(t *testing.T) {
	c := breaker.Config{LastCalls: 10, MinCalls: 10, FailureRate: 0.5}
	s := play(t, c)
	s.b.ForceAt(s.now, breaker.Shadow) // to see the window go on
	s.do("0 SSEE .... shadow -1 2 4 2 0", "0 EEEESSSS ........ shadow 60 4 10 6 0", "0 SSS ... shadow 30 7 10 3 0")
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

func TestScenarioB31B32B33_WhatIsRecorded(t *testing.T) {
	b := breaker.New("b", breaker.Config{Classify: breaker.FailOn(io.EOF)})
	run(t, b, 1, func(context.Context) error { return io.EOF })
	run(t, b, 1, func(context.Context) error { return errors.New("business") })
	require.Equal(t, window.Counts{Successes: 1, Failures: 1}, withoutStreak(b.Counts()))

	errFormat := errors.New("format")
	b = breaker.New("b", breaker.Config{Classify: breaker.Ignore(errFormat)})
	run(t, b, 1, fail)
	run(t, b, 1, func(context.Context) error { return errors.Join(io.EOF, errFormat) })
	require.Equal(t, window.Counts{Failures: 1, Ignored: 1}, withoutStreak(b.Counts()))

	b = breaker.New("b", breaker.Config{})
	for _, answer := range []string{"accepted", "failure"} {
		v, err := breaker.DoResult(bg(), b, func(context.Context) (string, error) { return answer, nil }, func(v string, err error) breaker.Outcome {
			if v == "failure" {
				return breaker.Failure
			}
			return breaker.DefaultClassify(err)
		})
		require.NoError(t, err)
		require.Equal(t, answer, v)
	}
	require.Equal(t, window.Counts{Successes: 1, Failures: 1}, withoutStreak(b.Counts()))
}

// waitError is an error with a method RetryAfter.
type waitError struct{ after time.Duration }

func (waitError) Error() string               { return "come back later" }
func (e waitError) RetryAfter() time.Duration { return e.after }
func failWith(err error) func(context.Context) error {
	return func(context.Context) error { return err }
}

func TestScenarioB34_AResultThatOpensAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		banned := waitError{2 * time.Hour}
		var told recorder
		b := breaker.New("b", told.on(breaker.Config{MaxRetryAfter: 24 * time.Hour, Trip: func(c window.Counts) (string, bool) {
			return "banned", c.Failures > 0
		}, Classify: breaker.FailOn(banned)}))
		run(t, b, 1, fail)
		require.Equal(t, breaker.Closed, b.State())
		require.Equal(t, banned, b.Run(bg(), failWith(banned)))
		require.Equal(t, breaker.Open, b.State())
		require.Equal(t, "banned", told.changes()[0].Reason)
		time.Sleep(2*time.Hour - 1)
		refused(t, b)
		time.Sleep(time.Nanosecond)
		require.Equal(t, breaker.HalfOpen, b.State())
	})
}

func TestScenarioB35_OneChangeAndOneRefusal(t *testing.T) {
	s := play(t, breaker.Config{LastCalls: 1, Cooldown: time.Hour}, "0 EE .r open", "0 S r open")
	require.Len(t, s.changes(), 1)
	require.Equal(t, int64(2), s.b.Totals().Refused)
}

func TestScenarioB36_CancelledWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("b", breaker.Config{})
		ctx, cancel := context.WithCancel(bg())
		time.AfterFunc(time.Second, cancel)
		wait := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		require.ErrorIs(t, b.Run(ctx, wait), context.Canceled)
		require.Zero(t, b.Counts().Calls())
		ctx, cancel = context.WithTimeout(bg(), time.Second)
		defer cancel()
		require.ErrorIs(t, b.Run(ctx, wait), context.DeadlineExceeded)
		require.Equal(t, int64(1), b.Counts().Failures)
	})
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
	s := play(t, breaker.Config{LastCalls: 5, MinCalls: 6}, "0 EEEE .... closed", "0 E . open") // judged after five
	require.Equal(t, "failure rate 100% of 5 calls, limit 50%", s.told.changes()[0].Reason)
	require.NoError(t, breaker.Config{Window: 10 * time.Second, MinCalls: 100}.Validate())
	require.Error(t, breaker.Config{FailureRate: 1.01}.Validate())
}

func TestScenarioB52_TenFailuresAndTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told recorder
		b := breaker.New("b", told.on(breaker.Config{MinCalls: 10, Cooldown: time.Second, Probes: 1}))
		run(t, b, 10, fail)
		wait := func() time.Duration {
			var e *breaker.OpenError
			require.ErrorAs(t, b.Run(bg(), succeed), &e)
			return e.RetryAfter()
		}
		require.Equal(t, time.Second, wait())
		time.Sleep(500 * time.Millisecond)
		require.Equal(t, 500*time.Millisecond, wait())
		time.Sleep(500 * time.Millisecond)
		run(t, b, 1, fail)
		require.Equal(t, time.Second, wait())
		time.Sleep(time.Second)
		run(t, b, 1, succeed)
		require.Equal(t, breaker.Closed, b.State())
		var to []breaker.State
		for _, c := range told.changes() {
			to = append(to, c.To)
		}
		require.Equal(t, []breaker.State{breaker.Open, breaker.HalfOpen, breaker.Open, breaker.HalfOpen, breaker.Closed}, to)
	})
}

func TestScenarioB54_RoundsCountUntilItCloses(t *testing.T) {
	c := breaker.Config{MinCalls: 1, Probes: 1, Cooldown: time.Second, CooldownFactor: 2, MaxCooldown: 10 * time.Second}
	s := play(t, c, "0 E . open")
	at := 0.0
	for _, wait := range []float64{1, 2, 4, 8, 10, 10} {
		at += wait
		s.now = t0.Add(sec(at) - 1)
		require.Equal(t, breaker.Open, s.b.StateAt(s.now), "after %v s", at)
		s.now = t0.Add(sec(at))
		s.do("0 E . open")
	}
	s.now = s.now.Add(10 * time.Second)
	s.do("0 SE .. open")
	require.Equal(t, breaker.HalfOpen, s.b.StateAt(s.now.Add(time.Second)), "begun anew")
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

func TestScenarioB56B57_ResultsByState(t *testing.T) {
	s := play(t, breaker.Config{MinCalls: 2, Probes: 1, Cooldown: 5 * time.Second}, "0 S . closed", "0 AAA ... closed", "0 b . open 50 1 2 1 0",
		"0 gb !! open 50 1 2 1 0") // results that come while it is open change nothing
	require.Len(t, s.changes(), 1)
	s.do("5 E . open 100 0 1 1 0", "10 S . closed")
}

func TestScenarioB58_TheSecondWaitsForTheProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := halfOpen(t, breaker.Config{Probes: 1, ProbeTimeout: 3 * time.Second})
		hold(t, b, 1)
		var e *breaker.OpenError
		require.ErrorAs(t, b.Run(bg(), succeed), &e)
		require.Equal(t, 3*time.Second, e.RetryAfter(), "at the latest")
	})
}

func TestScenarioB62B63_Isolated(t *testing.T) {
	s := play(t, fast())
	s.b.ForceAt(s.now, breaker.ForcedOpen)
	_, err := s.b.AllowAt(s.now)
	var e *breaker.OpenError
	require.ErrorAs(t, err, &e)
	require.Equal(t, 5*time.Second, e.RetryAfter(), "the cooldown")
	require.True(t, e.Until.IsZero())
	s.b.ReleaseAt(s.now)
	s.do("0 S . closed")
	for _, c := range s.told.changes() {
		require.Equal(t, "hand", c.Origin())
	}
}

func TestScenarioB64_WaitsNearTheEndOfTime(t *testing.T) {
	c := breaker.Config{MinCalls: 1, Cooldown: math.MaxInt64, CooldownFactor: 100, MaxCooldown: math.MaxInt64, Probes: 1, MaxRetryAfter: math.MaxInt64}
	b := breaker.NewAt("b", c, t0)
	for range 3 {
		b.OpenForAt(t0.Add(time.Second), 0)
		p, err := b.AllowAt(t0.Add(time.Second))
		require.NoError(t, err)
		p.SetRetryAfter(math.MaxInt64)
		require.True(t, p.RecordAt(t0.Add(time.Second), breaker.Failure))
		require.Equal(t, breaker.Open, b.StateAt(t0.Add(200*365*24*time.Hour)))
	}
}

func TestScenarioB65_RefusalsShareOneError(t *testing.T) {
	b := breaker.New("b", breaker.Config{MinCalls: 1, Cooldown: time.Hour})
	run(t, b, 1, fail)
	first := b.Run(bg(), succeed)
	for range 100 {
		require.Same(t, first, b.Run(bg(), succeed))
	}
}

func TestScenarioB66_CallsOfAnyTypeShareABreaker(t *testing.T) {
	var told recorder
	b := breaker.New("b", told.on(breaker.Config{MinCalls: 10, FailureRate: 1, Probes: 2, Cooldown: breaker.Off}))
	for range 5 {
		_, _ = breaker.Do(bg(), b, func(context.Context) (int, error) { return -1, errDown })
		_, _ = breaker.Do(bg(), b, func(context.Context) (string, error) { return "error", errDown })
	}
	require.Equal(t, breaker.Open, told.changes()[0].To)
	_, err := breaker.Do(bg(), b, func(context.Context) (int, error) { return 1, nil })
	require.NoError(t, err)
	_, err = breaker.Do(bg(), b, func(context.Context) (string, error) { return "fine", nil })
	require.NoError(t, err)
	require.Equal(t, breaker.Closed, b.State())
}

func TestScenarioB67_ThreeFailuresThenSevenRefusals(t *testing.T) {
	play(t, breaker.Config{FailureRate: 0.1, Window: time.Second, MinCalls: 3}, "0 EEEEEEEEEE ...rrrrrrr open")
}

func TestScenarioB68_DefaultVerdicts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := halfOpen(t, breaker.Config{Probes: 1})
		ctx, cancel := context.WithCancel(bg())
		require.ErrorIs(t, b.Run(ctx, func(ctx context.Context) error { cancel(); return ctx.Err() }), context.Canceled)
		require.Equal(t, breaker.HalfOpen, b.State(), "a cancelled probe does not close it")
	})
}

func TestScenarioB69_AllFaultsTogether(t *testing.T) {
	err := breaker.Config{
		FailureRate: 2, SlowRate: math.NaN(), SlowCall: -1, ConsecutiveFailures: -5, MinCalls: -9, LastCalls: -1,
		Cooldown: -9, CooldownFactor: 0.5, MaxCooldown: -1, CooldownJitter: 2, MaxRetryAfter: -9, Probes: -1, ProbeTimeout: -1,
		HalfOpenTimeout: -1, Initial: breaker.HalfOpen,
	}.Validate()
	require.EqualError(t, err, `breaker: FailureRate is 2, must be above 0 and at most 1, or Off
breaker: SlowRate is NaN, must be above 0 and at most 1, or Off
breaker: SlowCall is -1ns, must not be negative
breaker: ConsecutiveFailures is -5, must be at least 1, or 0 for never
breaker: MinCalls is -9, must be at least 1
breaker: LastCalls is -1, must lie between 1 and 100000, or 0 for a time span
breaker: Cooldown is -9ns, must not be negative, or Off
breaker: CooldownFactor is 0.5, must lie between 1 and 100
breaker: MaxCooldown is -1ns, must not be negative
breaker: CooldownJitter is 2, must lie between 0 and 1
breaker: MaxRetryAfter is -9ns, must not be negative, or Off
breaker: Probes is -1, must lie between 1 and 10000
breaker: ProbeTimeout is -1ns, must not be negative
breaker: HalfOpenTimeout is -1ns, must not be negative
breaker: Initial is "half_open", must be closed, open, forced_open, forced_closed, disabled or shadow`)
	for _, c := range []breaker.Config{
		{SlowRate: 0.5},
		{HungCalls: true},
		{LastCalls: 5, Window: 1},
		{MaxCooldown: 1, Cooldown: 2},
		{MaxCooldown: 5*time.Second - 1},
		{CooldownFactor: math.Inf(1)},
		{CooldownJitter: math.NaN()},
		{CooldownFactor: math.NaN()},
		{Initial: "trial"},
		{SlowRate: -0.2, SlowCall: 1},
	} {
		require.Error(t, c.Validate(), "%+v", c)
	}
}

func TestScenarioB70_OneProbeAWindow(t *testing.T) {
	c := breaker.Config{MinCalls: 5, Probes: 1, Cooldown: 5 * time.Second, Window: 10 * time.Second}
	play(t, c, "0 EEEE .... closed")
	s := play(t, c, "0 EEEEE ..... open", "5 AS .r half_open", "5 b . open", "10 AS .r half_open", "10 b . open",
		"15 A . half_open") // and never comes back
	s.do("115 S . closed -1 0 0 0 0", "115 E . closed -1 0 1 1 0")
}

func TestScenarioB72_OneFailureOfSeven(t *testing.T) {
	c := breaker.Config{FailureRate: 0.2, Window: 20 * time.Second, Buckets: 20, MinCalls: 1, Cooldown: 10 * time.Second, Probes: 1}
	play(t, c, "0 SE .. open", "0 S r open", "0.1 S r open", "5 S r open", "10 E . open", "20 S . closed", "20 SSSSSS ...... closed", "20 E . closed")
	slow := breaker.Config{SlowCall: 10 * time.Millisecond, SlowRate: 1, FailureRate: breaker.Off, MinCalls: 3, Cooldown: 5 * time.Second}
	s := play(t, slow, "0 sss ... open", "3.1 S r open", "4 S r open")
	s.do("8.1 S . half_open")
}

func TestScenarioB74_FailuresInARow(t *testing.T) {
	c := breaker.Config{FailureRate: breaker.Off, ConsecutiveFailures: 3, Cooldown: 5 * time.Second, Probes: 1}
	s := play(t, c, "0 EESEE ..... closed", "0 E . open", "5 E . open", "10 I . half_open", "10 S . closed", "10 EE .. closed", "10 E . open")
	require.Equal(t, "3 failures in a row, limit 3", s.told.changes()[0].Reason)
	require.Equal(t, "a probe failed", s.told.changes()[2].Reason)

	play(t, breaker.Config{MinCalls: 5, FailureRate: 1}, "0 EEEE .... closed", "0 E . open") // five, not four
}

func TestScenarioB76_RowsAndRates(t *testing.T) {
	c := breaker.Config{FailureRate: 0.5, ConsecutiveFailures: 3, MinCalls: 3, Cooldown: time.Second, CooldownFactor: 2, Probes: 1}
	s := play(t, c, "0 EEE ... open") // both at once
	require.Contains(t, s.told.changes()[0].Reason, "failure rate 100% of 3 calls")
	s.do("1 E . open", "2.9 S r open", "3 S . closed") // the wait grew
	s.do("203 SE .. closed", "203 E . open")           // after a long idle time three calls are needed again
	s.do("204 A . half_open", "209 b . open")          // a probe slower than the wait counts
	require.Error(t, breaker.Config{ConsecutiveFailures: -2}.Validate())
}

func TestScenarioB81B82_ResultsFromBeforeTheTrip(t *testing.T) {
	c := breaker.Config{MinCalls: 5, Probes: 2, Cooldown: 5 * time.Second}
	s := play(t, c, "0 AAA ... closed", "0 EEEEE ..... open", "5 AA .. half_open -1 0 0 0 0", "5 gbi !!! half_open -1 0 0 0 0", "5 S r half_open")
	require.Equal(t, int64(3), s.b.StatsAt(s.now).Late)
	s.do("5 gg .. closed")
}

func TestScenarioB83B84B85_ProbesThatEndOddly(t *testing.T) {
	c := breaker.Config{MinCalls: 5, Probes: 1, Cooldown: 5 * time.Second, ProbeTimeout: 2 * time.Second}
	s := play(t, c, "0 EEEEE ..... open", "5 A . half_open", "5 i . half_open -1 0 0 0 0")  // the caller gave up
	s.do("5 A . half_open", "6.9 S r half_open", "7 S . closed", "7 b ! closed -1 0 0 0 0") // never reported in time
	s.do("7 A . closed")
	s.b.ResetAt(s.now)
	s.do("7 b ! closed -1 0 0 0 0") // reported after a reset
}

func TestFlawP_ScenarioB86_TimersOfThePast(t *testing.T) {
	c := breaker.Config{MinCalls: 5, Cooldown: 5 * time.Second, HalfOpenTimeout: time.Second}
	s := play(t, c, "0 EEEEE ..... open", "5 S . half_open")
	s.b.ResetAt(s.now)
	s.do("10 - - closed")
	s = play(t, c, "0 EEEEE ..... open")
	s.b.ResetAt(s.now)
	s.do("4 EEEEE ..... open", "5 S r open", "8.9 S r open", "9 S . half_open")
}

func TestScenarioB88_CallsThatHang(t *testing.T) {
	c := breaker.Config{SlowCall: time.Second, HungCalls: true, MinCalls: 20}
	s := play(t, c, "0 AAAAAAAAAAAAAAAAAAAA .................... closed", "0.9 S . closed", "3.1 S r open")
	require.Equal(t, "slow rate 95.2% of 21 calls, limit 50%, 20 of them still in flight", s.told.changes()[0].Reason)
	s.do("4 gggggggggggggggggggg !!!!!!!!!!!!!!!!!!!! open")
	s.do("8.1 SSS ... closed", "9 SSSSSSSSSSSSSSSSSSSSSSSSS ......................... closed", "20 S . closed")

	c.HungCalls = false
	play(t, c, "0 AAAAAAAAAAAAAAAAAAAA .................... closed", "3.1 S . closed")
}

func TestFlawN_ScenarioB89_NoRounding(t *testing.T) {
	play(t, breaker.Config{FailureRate: 1, MinCalls: 4}, "0 EEEE .... open")
	b := breaker.New("b", breaker.Config{MinCalls: 1000})
	run(t, b, 496, fail)
	run(t, b, 504, succeed)
	require.Equal(t, breaker.Closed, b.State(), "49.6 % is not 50 %")
}

func TestScenarioB90_FewerCallsNeededThanProbes(t *testing.T) {
	c := breaker.Config{MinCalls: 2, Probes: 4, Cooldown: 5 * time.Second}
	play(t, c, "0 EE .. open", "5 AAAAS ....r half_open", "5 b . half_open", "5 b . open")
	play(t, c, "0 EE .. open", "5 SS .. closed")
}

func TestScenarioB87_ExactlyNOfAHundred(t *testing.T) {
	b := breaker.New("b", breaker.Config{MinCalls: 1, Cooldown: breaker.Off, Probes: 7})
	run(t, b, 1, fail)
	var admitted atomic.Int64
	var ready, wg sync.WaitGroup
	ready.Add(100)
	for range 100 {
		wg.Go(func() {
			ready.Done()
			ready.Wait()
			if _, err := b.Allow(); err == nil {
				admitted.Add(1)
			}
		})
	}
	wg.Wait()
	require.Equal(t, int64(7), admitted.Load())
	require.Equal(t, int64(93), b.Totals().Refused)
}
