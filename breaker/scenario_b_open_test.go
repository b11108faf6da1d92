package breaker_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/window"
)

func TestScenarioB05_OpenedByHand(t *testing.T) {
	s := runScript(t, configWithoutSlow())
	s.b.OpenForAt(s.now, secondsOf(5))
	s.do("0 S r open", "3 S r open -1 0 0 0 2", "6 A . half_open -1 0 0 0 0")
}

func TestScenarioB06_OpenForTwoHours(t *testing.T) {
	s := runScript(t, configWithoutSlow())
	s.b.OpenForAt(s.now, 2*time.Hour)
	s.do("0 S r open", "3600 S r open -1 0 0 0 2", "7201 A . half_open")
}

func TestScenarioB07_OpenForHalfAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("b", breaker.Config{})
		b.OpenFor(30 * time.Minute)
		requireRefused(t, b)
		time.Sleep(15 * time.Minute)
		requireRefused(t, b)
		time.Sleep(15*time.Minute + time.Second)
		run(t, b, 1, succeed)
		require.Equal(t, breaker.HalfOpen, b.State())
	})
}

func TestScenarioB08_CooldownsThatGrow(t *testing.T) {
	c := configWithoutSlow()
	c.CooldownFactor = 1.5
	s := runScript(t, c, "0 EEEEE ..... open", "3 S r open", "6 EEEE .... open")
	s.do("12 S r open", "17 A . half_open") // the cooldown is 7.5 s from 6 s on
}

// waitError is an error with a method RetryAfter.
type waitError struct{ after time.Duration }

func (waitError) Error() string { return "come back later" }

func (e waitError) RetryAfter() time.Duration { return e.after }

func failWith(err error) func(context.Context) error {
	return func(context.Context) error { return err }
}

func TestScenarioB34_AResultThatOpensAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		banned := waitError{2 * time.Hour}
		var told recorder
		b := breaker.New("b", told.attachTo(breaker.Config{MaxRetryAfter: 24 * time.Hour, CooldownJitter: breaker.Off, Trip: func(c window.Counts) (string, bool) {
			return "banned", c.Failures > 0
		}, Classify: breaker.FailOn(banned)}))
		run(t, b, 1, fail)
		require.Equal(t, breaker.Closed, b.State())
		require.Equal(t, banned, b.Run(bg(), failWith(banned)))
		require.Equal(t, breaker.Open, b.State())
		require.Equal(t, "banned", told.changes()[0].Reason)
		time.Sleep(2*time.Hour - 1)
		requireRefused(t, b)
		time.Sleep(time.Nanosecond)
		require.Equal(t, breaker.HalfOpen, b.State())
	})
}

func TestScenarioB35_OneChangeAndOneRefusal(t *testing.T) {
	s := runScript(t, breaker.Config{LastCalls: 1, Cooldown: time.Hour}, "0 EE .r open", "0 S r open")
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

func TestScenarioB52_TenFailuresAndTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told recorder
		b := breaker.New("b", told.attachTo(breaker.Config{Recovery: breaker.Off, MinCalls: 10, Cooldown: time.Second, Probes: 1}))
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
	c := breaker.Config{Recovery: breaker.Off, MinCalls: 1, Probes: 1, Cooldown: time.Second, CooldownFactor: 2, MaxCooldown: 10 * time.Second}
	s := runScript(t, c, "0 E . open")
	at := 0.0
	for _, wait := range []float64{1, 2, 4, 8, 10, 10} {
		at += wait
		s.now = t0.Add(secondsOf(at) - 1)
		require.Equal(t, breaker.Open, s.b.StateAt(s.now), "after %v s", at)
		s.now = t0.Add(secondsOf(at))
		s.do("0 E . open")
	}
	s.now = s.now.Add(10 * time.Second)
	s.do("0 SE .. open")
	require.Equal(t, breaker.HalfOpen, s.b.StateAt(s.now.Add(time.Second)), "started again")
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

func TestScenarioB86_TimersOfThePast(t *testing.T) {
	c := breaker.Config{MinCalls: 5, Cooldown: 5 * time.Second, HalfOpenTimeout: time.Second}
	s := runScript(t, c, "0 EEEEE ..... open", "5 S . half_open")
	s.b.ResetAt(s.now)
	s.do("10 - - closed")
	s = runScript(t, c, "0 EEEEE ..... open")
	s.b.ResetAt(s.now)
	s.do("4 EEEEE ..... open", "5 S r open", "8.9 S r open", "9 S . half_open")
}
