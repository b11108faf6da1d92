package breaker_test

import (
	"context"
	"errors"
	"io"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/window"
)

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

func TestScenarioB56B57_ResultsByState(t *testing.T) {
	s := runScript(t, breaker.Config{Recovery: breaker.Off, MinCalls: 2, Probes: 1, Cooldown: 5 * time.Second}, "0 S . closed", "0 AAA ... closed", "0 b . open 50 1 2 1 0",
		"0 gb !! open 50 1 2 1 0") // results that come while it is open change nothing
	require.Len(t, s.changes(), 1)
	s.do("5 E . open 100 0 1 1 0", "10 S . closed")
}

func TestScenarioB66_CallsOfAnyTypeShareABreaker(t *testing.T) {
	var told recorder
	b := breaker.New("b", told.attachTo(breaker.Config{Recovery: breaker.Off, MinCalls: 10, FailureRate: 1, Probes: 2, Cooldown: breaker.Off}))
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

func TestScenarioB68_DefaultVerdicts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newHalfOpen(t, breaker.Config{Probes: 1})
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
breaker: CooldownJitter is 2, must lie between 0 and 1, or Off
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
		{MaxCooldown: time.Second - 1},
		{CooldownFactor: math.Inf(1)},
		{CooldownJitter: math.NaN()},
		{CooldownFactor: math.NaN()},
		{Initial: "trial"},
		{SlowRate: -0.2, SlowCall: 1},
	} {
		require.Error(t, c.Validate(), "%+v", c)
	}
}

func TestScenarioB81B82_ResultsFromBeforeTheTrip(t *testing.T) {
	c := breaker.Config{Recovery: breaker.Off, MinCalls: 5, Probes: 2, Cooldown: 5 * time.Second}
	s := runScript(t, c, "0 AAA ... closed", "0 EEEEE ..... open", "5 AA .. half_open -1 0 0 0 0", "5 gbi !!! half_open -1 0 0 0 0", "5 S r half_open")
	require.Equal(t, int64(3), s.b.StatsAt(s.now).Late)
	s.do("5 gg .. closed")
}
