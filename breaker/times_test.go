package breaker_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
)

// The breaker is made on the real clock, as a package variable is. It is used on the clock of a
// synctest bubble, which begins in the year 2000.
func TestABreakerOfThePackageWorksOnTheClockOfATest(t *testing.T) {
	b := breaker.New("b", breaker.Config{Cooldown: 5 * time.Second, Recovery: breaker.Off, MinCalls: 5, SlowCall: time.Second})
	synctest.Test(t, func(t *testing.T) {
		require.NoError(t, b.Run(bg(), succeed), "looked at and called, and timed from its first call on")
		require.Zero(t, b.Counts().Slow)
		run(t, b, 4, fail)
		require.Equal(t, breaker.Open, b.State())
		require.Equal(t, time.Now(), b.StatsNow().Since)
		require.ErrorIs(t, b.Run(bg(), succeed), breaker.ErrOpen)
		time.Sleep(5*time.Second - 1)
		require.ErrorIs(t, b.Run(bg(), succeed), breaker.ErrOpen)
		time.Sleep(time.Nanosecond)
		require.Equal(t, breaker.HalfOpen, b.State())
		run(t, b, 3, succeed)
		require.Equal(t, breaker.Closed, b.State())
	})
}

const year = 365 * 24 * time.Hour

func TestABreakerMadeAtAnotherTimeBeginsWithTheFirstTimeGiven(t *testing.T) {
	for _, made := range []time.Time{{}, time.Unix(0, 0), t0.Add(-year), t0.Add(time.Nanosecond), t0.Add(time.Hour), t0.Add(26 * year), t0.Add(140 * year)} {
		for name, c := range map[string]breaker.Config{
			"rate":     {MinCalls: 5},
			"calls":    {MinCalls: 5, LastCalls: 10},
			"in a row": {ConsecutiveFailures: 5},
			"of slow":  {MinCalls: 5, SlowCall: time.Nanosecond, FailureRate: breaker.Off},
		} {
			name, c.Recovery, c.Cooldown = fmt.Sprintf("%s, made %v", name, made), breaker.Off, 5*time.Second
			var told recorder
			b := breaker.NewAt("b", told.attachTo(c), made)
			for at := range 5 {
				p, err := b.AllowAt(modelTimeAt(at))
				require.NoError(t, err, name)
				require.True(t, p.RecordAt(modelTimeAt(at).Add(time.Microsecond), breaker.Failure))
			}
			require.Equal(t, breaker.Open, b.StateAt(modelTimeAt(5)), name)
			require.ErrorIs(t, modelMakeCall(b, 4999, breaker.Success), breaker.ErrOpen, name)
			for range 3 {
				require.NoError(t, modelMakeCall(b, 5010, breaker.Success), name)
			}
			require.Equal(t, breaker.Closed, b.StateAt(modelTimeAt(5010)), name)
			for i, want := range []int{4, 5004, 5010} {
				require.WithinDuration(t, modelTimeAt(want), told.changes()[i].At, ms, name)
			}
		}
	}
}

// Methods that only read a breaker do not set its clock.
func TestObserveDoesNotSetTheClock(t *testing.T) {
	b := breaker.NewAt("b", breaker.Config{MinCalls: 1}, t0.Add(26*year))
	require.Equal(t, breaker.Closed, b.StateAt(t0.Add(30*year)))
	require.Zero(t, b.CountsAt(t0.Add(30*year)))
	require.NoError(t, modelMakeCall(b, 0, breaker.Failure))
	require.Equal(t, breaker.Open, b.StateAt(modelTimeAt(0)))
	require.Equal(t, breaker.HalfOpen, b.StateAt(modelTimeAt(5000)))
}

// staleTimes lists times before the latest one that a breaker has seen.
var staleTimes = map[string]time.Time{
	"zero": {}, "1600": time.Date(1600, 1, 1, 0, 0, 0, 0, time.UTC), "1700": time.Date(1700, 1, 1, 0, 0, 0, 0, time.UTC),
	"1900": time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC), "a year before": t0.Add(-year), "just before": t0.Add(-1),
}

func TestAStaleTimeEndsNoCooldown(t *testing.T) {
	for name, at := range staleTimes {
		for verb, do := range map[string]func(b *breaker.Breaker){
			"AllowAt": func(b *breaker.Breaker) {
				_, err := b.AllowAt(at)
				require.ErrorIs(t, err, breaker.ErrOpen, name)
			},
			"AdmitAt": func(b *breaker.Breaker) {
				require.ErrorIs(t, b.AdmitAt(at, new(breaker.Permit)), breaker.ErrOpen, name)
			},
			"CheckAt":   func(b *breaker.Breaker) { require.ErrorIs(t, b.CheckAt(at), breaker.ErrOpen, name) },
			"StateAt":   func(b *breaker.Breaker) { require.Equal(t, breaker.Open, b.StateAt(at), name) },
			"CountsAt":  func(b *breaker.Breaker) { b.CountsAt(at) },
			"StatsAt":   func(b *breaker.Breaker) { b.StatsAt(at) },
			"ForceAt":   func(b *breaker.Breaker) { b.ForceAt(at, breaker.Disabled, ""); b.ReleaseAt(at) },
			"Force, at": func(b *breaker.Breaker) { b.ForceAt(at, breaker.ForcedOpen, ""); b.ReleaseAt(t0) },
			"OpenForAt": func(b *breaker.Breaker) { b.OpenForAt(at, time.Hour) },
			"ReconfigureAt": func(b *breaker.Breaker) {
				require.NoError(t, b.ReconfigureAt(at, breaker.Config{MinCalls: 1}))
			},
		} {
			b := breaker.NewAt("b", breaker.Config{MinCalls: 1, Cooldown: time.Hour}, t0)
			late, err := b.AllowAt(t0)
			require.NoError(t, err)
			require.NoError(t, modelMakeCall(b, 0, breaker.Failure))
			do(b)
			require.False(t, late.RecordAt(at, breaker.Success))
			require.Equal(t, breaker.Open, b.StateAt(modelTimeAt(3_599_999)), "%s, %s", verb, name)
			require.Equal(t, breaker.HalfOpen, b.StateAt(modelTimeAt(3_600_000)), "%s, %s", verb, name)
		}
	}
}

func TestAResultAtAStaleTimeCountsAsOfTheNewest(t *testing.T) {
	for name, at := range staleTimes {
		for _, c := range []breaker.Config{{}, {SlowCall: time.Hour, SlowRate: 0.1}, {LastCalls: 20}} {
			c.FailureRun, c.Cooldown = breaker.Off, 5*time.Second
			b := breaker.NewAt("b", c, t0)
			for range 19 {
				require.NoError(t, modelMakeCall(b, 0, breaker.Failure), name)
			}
			p := requireAllowed(t, b, 0)
			require.True(t, p.RecordAt(at, breaker.Failure), name)
			require.Equal(t, breaker.Open, b.StateAt(t0), name)
			require.Equal(t, int64(20), b.CountsAt(t0).Failures, name)
			require.Zero(t, b.CountsAt(t0).Slow, name)
			require.Equal(t, breaker.Open, b.StateAt(modelTimeAt(4999)), name)
			require.Equal(t, breaker.HalfOpen, b.StateAt(modelTimeAt(5000)), name)
		}
	}
}

// If the first time is earlier than any clock can show, such as the zero time, it is stale. The
// breaker does not begin at it.
func TestTheZeroTimeDoesNotSetTheClock(t *testing.T) {
	b := breaker.NewAt("b", breaker.Config{}, t0)
	b.OpenForAt(time.Time{}, time.Second)
	_, err := b.AllowAt(time.Time{})
	require.ErrorIs(t, err, breaker.ErrOpen)
	require.Equal(t, breaker.Open, b.StateAt(modelTimeAt(999)), "the cooldown is not over")
	require.Equal(t, breaker.HalfOpen, b.StateAt(modelTimeAt(1000)))
}

func TestFailuresAtStaleTimesOpenToo(t *testing.T) {
	b := breaker.NewAt("b", breaker.Config{FailureRun: breaker.Off}, t0)
	require.NoError(t, modelMakeCall(b, 0, breaker.Success))
	for range 19 {
		require.NoError(t, modelMakeCall(b, -1000, breaker.Failure))
	}
	require.Equal(t, breaker.Open, b.StateAt(t0))
}

// A clock that steps forward by a year ends the window and the cooldown once. Calls at the old
// times are stale then, and still count.
func TestAClockThatStepsByAYear(t *testing.T) {
	b := breaker.NewAt("b", breaker.Config{MinCalls: 5, SlowCall: time.Second}, t0)
	for range 4 {
		require.NoError(t, modelMakeCall(b, 0, breaker.Failure))
	}
	p, err := b.AllowAt(t0.Add(year))
	require.NoError(t, err)
	require.True(t, p.RecordAt(t0.Add(year), breaker.Failure))
	require.Equal(t, breaker.Closed, b.StateAt(t0.Add(year)), "the first four have left the window")
	for at := range 4 {
		require.NoError(t, modelMakeCall(b, at, breaker.Failure))
	}
	require.Equal(t, breaker.Open, b.StateAt(modelTimeAt(4)))
	require.ErrorIs(t, modelMakeCall(b, 60_000, breaker.Success), breaker.ErrOpen)
	require.Equal(t, breaker.HalfOpen, b.StateAt(t0.Add(year+5*time.Second)))
}

// A breaker distinguishes times up to 146 years from its creation. All later times are the same to
// it.
func TestTimesUpTo146YearsApartAreDistinguished(t *testing.T) {
	b := breaker.NewAt("b", breaker.Config{Cooldown: 5 * time.Second, MinCalls: 1}, t0.Add(146*year))
	require.NoError(t, modelMakeCall(b, 0, breaker.Failure))
	require.Equal(t, breaker.Open, b.StateAt(modelTimeAt(4999)), "it begins with a time 146 years before it was made")
	require.Equal(t, breaker.HalfOpen, b.StateAt(modelTimeAt(5000)))

	b = breaker.NewAt("b", breaker.Config{Cooldown: 5 * time.Second, MinCalls: 1}, t0)
	require.NoError(t, modelMakeCall(b, 0, breaker.Success))
	fail := func(at time.Time) {
		p, err := b.AllowAt(at)
		require.NoError(t, err)
		require.True(t, p.RecordAt(at, breaker.Failure))
		require.Equal(t, breaker.Open, b.StateAt(at))
	}
	late := t0.Add(146 * year)
	fail(late)
	require.Equal(t, breaker.Open, b.StateAt(late.Add(4999*ms)))
	require.Equal(t, breaker.HalfOpen, b.StateAt(late.Add(5000*ms)))
	fail(t0.Add(147 * year))
	require.Equal(t, breaker.Open, b.StateAt(t0.Add(290*year)))
}

// Many goroutines give a breaker its first time, and agree on it.
func TestAllCallersShareTheFirstTime(t *testing.T) {
	for range 200 {
		b := breaker.NewAt("b", breaker.Config{MinCalls: 8, SlowCall: time.Second}, time.Now().Add(year))
		done := make(chan bool)
		for range 8 {
			go func() {
				_ = b.Run(bg(), fail)
				b.State()
				done <- true
			}()
		}
		for range 8 {
			<-done
		}
		require.Equal(t, breaker.Open, b.State())
		require.Zero(t, b.Totals().Slow)
	}
}

// A breaker reports the end of its cooldown by the clock that it is used with.
func TestBreakerOpenedAtFirstRefusesByTheTimeItIsUsedAt(t *testing.T) {
	for name, ask := range map[string]func(*breaker.Breaker) error{
		"Allow": func(b *breaker.Breaker) error {
			_, err := b.AllowAt(t0)
			return err
		},
		"Check": func(b *breaker.Breaker) error { return b.CheckAt(t0) },
	} {
		t.Run(name, func(t *testing.T) {
			b := breaker.NewAt("b", breaker.Config{}, t0.Add(1000*time.Hour))
			b.OpenForAt(t0, time.Second)
			var refusal *breaker.OpenError
			require.ErrorAs(t, ask(b), &refusal)
			require.Equal(t, t0.Add(time.Second), refusal.Until)
		})
	}
}
