package breaker_test

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/window"
)

// Scenarios A16 to A18.
func TestAnOpenBreakerRefusesUntilItsCooldownEnds(t *testing.T) {
	c := breaker.Config{MinCalls: 5, Cooldown: 5 * time.Second}
	s := runScript(t, c, "0 AAA ... closed", "0 EEEEE ..... open 100 0 5 5 0", "4.999999999 S r open", "4.999999999 gb !! open")
	require.Len(t, s.changes(), 1, "a late failure is no news")
	s.do("5 - - half_open -1 0 0 0 0", "5 g ! half_open")
}

// Scenario A23.
func TestCooldownsGrowAndHaveJitter(t *testing.T) {
	c := breaker.Config{MinCalls: 1, Probes: 1, Cooldown: time.Second, CooldownFactor: 2, MaxCooldown: 5 * time.Second, CooldownJitter: 0.5}
	shorter := 0
	for range 50 {
		s := runScript(t, c, "0 E . open")
		for _, longest := range []float64{1, 2, 4, 5, 5} {
			wait := s.b.StatsAt(s.now).Since
			_, err := s.b.AllowAt(s.now)
			var e *breaker.OpenError
			require.ErrorAs(t, err, &e)
			cooldown := e.Until.Sub(wait).Seconds()
			require.LessOrEqual(t, cooldown, longest)
			require.GreaterOrEqual(t, cooldown, longest/2)
			if cooldown < longest*0.9 {
				shorter++
			}
			s.now = e.Until
			s.call('E')
		}
	}
	require.Greater(t, shorter, 50, "jitter spreads the cooldowns: of 250")
}

// Scenario A24.
func TestTheRetryAfterOfTheServiceIsObeyed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("b", breaker.Config{MinCalls: 3, Cooldown: 5 * time.Second, CooldownJitter: breaker.Off})
		run(t, b, 1, failWith(fmt.Errorf("503: %w", waitError{30 * time.Second})))
		run(t, b, 2, fail)
		require.Equal(t, breaker.Open, b.State())
		time.Sleep(29 * time.Second)
		requireRefused(t, b)
		time.Sleep(time.Second)
		require.Equal(t, breaker.HalfOpen, b.State(), "asked for before it opened")

		for range 3 { // set by the caller, and bounded by MaxRetryAfter
			p, err := b.Allow()
			require.NoError(t, err)
			p.SetRetryAfter(time.Hour)
			require.True(t, p.Record(bg(), nil, breaker.Failure))
		}
		time.Sleep(time.Minute - 1)
		requireRefused(t, b)
		time.Sleep(time.Nanosecond)
		require.Equal(t, breaker.HalfOpen, b.State())

		run(t, b, 3, failWith(waitError{-time.Hour})) // shorter than the cooldown, or nonsense
		time.Sleep(5 * time.Second)
		require.Equal(t, breaker.HalfOpen, b.State())
	})
	b := breaker.New("b", breaker.Config{MinCalls: 1, Cooldown: breaker.Off, MaxRetryAfter: breaker.Off})
	run(t, b, 1, failWith(waitError{time.Hour}))
	require.Equal(t, breaker.HalfOpen, b.State(), "not listened to")
}

// Scenario B05.
func TestABreakerOpenedByHandIsHalfOpenAfterwards(t *testing.T) {
	s := runScript(t, configWithoutSlow())
	s.b.OpenForAt(s.now, secondsOf(5))
	s.do("0 S r open", "3 S r open -1 0 0 0 2", "6 A . half_open -1 0 0 0 0")
}

// Scenario B06.
func TestOpenForTwoHours(t *testing.T) {
	s := runScript(t, configWithoutSlow())
	s.b.OpenForAt(s.now, 2*time.Hour)
	s.do("0 S r open", "3600 S r open -1 0 0 0 2", "7201 A . half_open")
}

// Scenario B07.
func TestOpenForHalfAnHour(t *testing.T) {
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

// Scenario B08.
func TestCooldownsGrowByTheFactor(t *testing.T) {
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

// Scenario B34.
func TestAResultThatOpensAtOnce(t *testing.T) {
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

// Scenario B35.
func TestAnOpeningIsOneChange(t *testing.T) {
	s := runScript(t, breaker.Config{LastCalls: 1, Cooldown: time.Hour}, "0 EE .r open", "0 S r open")
	require.Len(t, s.changes(), 1)
	require.Equal(t, int64(2), s.b.Totals().Refused)
}

// Scenario B52.
func TestTheWaitShrinksDuringTheCooldown(t *testing.T) {
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

// Scenario B54.
func TestCooldownsGrowUntilItCloses(t *testing.T) {
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

// Scenario B64.
func TestWaitsNearTheEndOfTime(t *testing.T) {
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

// Scenario B65.
func TestRefusalsShareOneError(t *testing.T) {
	b := breaker.New("b", breaker.Config{MinCalls: 1, Cooldown: time.Hour})
	run(t, b, 1, fail)
	first := b.Run(bg(), succeed)
	for range 100 {
		require.Same(t, first, b.Run(bg(), succeed))
	}
}

// Scenario B86.
func TestTimersOfThePastChangeNothing(t *testing.T) {
	c := breaker.Config{MinCalls: 5, Cooldown: 5 * time.Second, HalfOpenTimeout: time.Second}
	s := runScript(t, c, "0 EEEEE ..... open", "5 S . half_open")
	s.b.ResetAt(s.now)
	s.do("10 - - closed")
	s = runScript(t, c, "0 EEEEE ..... open")
	s.b.ResetAt(s.now)
	s.do("4 EEEEE ..... open", "5 S r open", "8.9 S r open", "9 S . half_open")
}

// Callers of another breaker can see the state Open before its deadline is set.
func TestAnOpenBreakerAlwaysHasItsDeadline(t *testing.T) {
	for range 200 {
		b := breaker.New("b", breaker.Config{MinCalls: 1, Cooldown: time.Hour})
		var wg sync.WaitGroup
		var through atomic.Int64
		for range 8 {
			wg.Go(func() {
				for b.State() == breaker.Closed {
					runtime.Gosched()
				}
				if _, err := b.Allow(); err == nil {
					through.Add(1)
				}
			})
		}
		_ = b.Run(bg(), fail)
		wg.Wait()
		require.Zero(t, through.Load())
	}
}

// Scenarios A20 and A21. In another breaker a probe is made while the breaker opens under load.
func TestNoProbeIsMadeWhileItOpens(t *testing.T) {
	b := breaker.New("b", breaker.Config{Cooldown: time.Hour})
	var wg sync.WaitGroup
	var afterOpen atomic.Int64
	for range 8 {
		wg.Go(func() {
			for range 5000 {
				wasOpen := b.Tripped()
				err := b.Run(bg(), fail)
				if wasOpen && err == errDown { //nolint:errorlint // the very error
					afterOpen.Add(1)
				}
			}
		})
	}
	wg.Wait()
	require.Zero(t, afterOpen.Load())
	require.Equal(t, breaker.Open, b.State())
	require.Zero(t, b.Totals().Successes)
	require.Equal(t, int64(8*5000), b.Totals().Failures+b.Totals().Refused+b.StatsNow().Late, "one outcome per call")
}
