package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/internal/sentinel"
	"github.com/weir-go/weir/internal/testenv"
	"github.com/weir-go/weir/window"
)

var (
	errDown = errors.New("down")
	t0      = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
)

func bg() context.Context { return context.Background() }

func succeed(context.Context) error { return nil }

func fail(context.Context) error { return errDown }

// run makes n calls with fn and requires that all are let through.
func run(t *testing.T, b *breaker.Breaker, n int, fn func(context.Context) error) {
	t.Helper()
	for range n {
		require.NotErrorIs(t, b.Run(bg(), fn), breaker.ErrOpen)
	}
}

func open(t *testing.T, b *breaker.Breaker) {
	t.Helper()
	for calls := 0; calls < 20 && b.State() != breaker.Open; calls++ {
		run(t, b, 1, fail)
	}
	require.Equal(t, breaker.Open, b.State())
}

func requireRefused(t *testing.T, b *breaker.Breaker) {
	t.Helper()
	called := false
	err := b.Run(bg(), func(context.Context) error { called = true; return nil })
	require.ErrorIs(t, err, breaker.ErrOpen)
	require.False(t, called, "a refused call must not reach the function")
}

func TestFreshBreakerIsClosedAndEmpty(t *testing.T) {
	b := breaker.New("fresh", breaker.Config{})
	require.Equal(t, breaker.Closed, b.State())
	require.False(t, b.Tripped())
	require.Zero(t, b.Counts())
	require.Zero(t, b.Totals())
	require.Equal(t, "fresh", b.Name())
}

// transition is a Change with its time since the start of a test.
type transition struct {
	seq      uint64
	after    time.Duration
	from, to breaker.State
	failures int64
	reason   string
}

func transitions(changes []breaker.Change, start time.Time) (list []transition) {
	for _, c := range changes {
		list = append(list, transition{c.Seq(), c.At.Sub(start), c.From, c.To, c.Counts.Failures, c.Reason})
	}
	return list
}

func TestTheWholeCycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var changes []breaker.Change
		b := breaker.New("b", breaker.Config{Recovery: breaker.Off, OnChange: func(c breaker.Change) { changes = append(changes, c) }})

		run(t, b, 10, succeed)
		run(t, b, 10, fail)
		require.Equal(t, breaker.Open, b.State(), "10 of 20 calls failed")
		requireRefused(t, b)

		time.Sleep(time.Second - 1)
		require.Equal(t, breaker.Open, b.State(), "a tick before the cooldown ends")
		requireRefused(t, b)
		time.Sleep(time.Nanosecond)
		require.Equal(t, breaker.HalfOpen, b.State(), "half-open once due, without traffic")
		require.Len(t, changes, 1)
		require.Zero(t, b.Counts())

		time.Sleep(time.Second)
		run(t, b, 2, fail)
		require.Equal(t, breaker.HalfOpen, b.State(), "judged after three results, not before")
		require.Equal(t, int64(2), b.Counts().Failures)
		run(t, b, 1, fail)
		require.Equal(t, breaker.Open, b.State(), "the probes failed")

		time.Sleep(time.Second)
		run(t, b, 3, succeed)
		require.Equal(t, breaker.Closed, b.State(), "the probes succeeded")
		require.Zero(t, b.Counts(), "a closed breaker starts again")

		require.Equal(t, []transition{
			{1, 0, breaker.Closed, breaker.Open, 10, "failure rate 50% of 20 calls, limit 50%"},
			{2, 1 * time.Second, breaker.Open, breaker.HalfOpen, 0, "the cooldown of 1s is over"},
			{3, 2 * time.Second, breaker.HalfOpen, breaker.Open, 3, "failure rate 100% of 3 calls, limit 50%, of probes"},
			{4, 3 * time.Second, breaker.Open, breaker.HalfOpen, 0, "the cooldown of 1s is over"},
			{5, 3 * time.Second, breaker.HalfOpen, breaker.Closed, 0, "3 of 3 probes succeeded"},
		}, transitions(changes, start))
		require.Equal(t, window.Totals{Successes: 13, Failures: 13, Refused: 2}, b.Totals())
	})
}

func TestOldFailuresDoNotTripABreakerThatHasJustClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("b", breaker.Config{Window: time.Minute, FailureRun: breaker.Off, Recovery: breaker.Off})
		open(t, b)
		time.Sleep(5 * time.Second)
		run(t, b, 3, succeed)
		require.Equal(t, breaker.Closed, b.State())
		run(t, b, 19, fail)
		require.Equal(t, breaker.Closed, b.State(), "the twenty failures before do not count")
		require.Equal(t, int64(19), b.Counts().Calls())
		run(t, b, 1, fail)
		require.Equal(t, breaker.Open, b.State())
	})
}

func TestCountsOfAnOpenBreakerShowWhatOpenedIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("b", breaker.Config{Cooldown: time.Hour, FailureRun: breaker.Off})
		open(t, b)
		time.Sleep(30 * time.Minute)
		requireRefused(t, b)
		requireRefused(t, b)
		require.Equal(t, window.Counts{Failures: 20, ConsecutiveFailures: 20, Refused: 2}, b.Counts())
	})
}

func TestOpenErrorSaysWhyAndUntilWhen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("payments", breaker.Config{Cooldown: 5 * time.Second, FailureRun: breaker.Off})
		open(t, b)
		until := time.Now().Add(5 * time.Second)
		time.Sleep(2 * time.Second)
		err := b.Run(bg(), succeed)
		require.ErrorIs(t, err, breaker.ErrOpen)
		require.ErrorIs(t, err, sentinel.ErrRefused)
		require.NotErrorIs(t, err, errDown)
		var e *breaker.OpenError
		require.ErrorAs(t, err, &e)
		require.Equal(t, "payments", e.Name)
		require.Equal(t, breaker.Open, e.State)
		require.Equal(t, "failure rate 100% of 20 calls, limit 50%", e.Reason)
		require.True(t, e.Until.Equal(until), "%v, want %v", e.Until, until)
		require.Equal(t, 3*time.Second, e.RetryAfter())
		require.Equal(t, fmt.Sprintf("breaker %q is open until %s: failure rate 100%% of 20 calls, limit 50%%", "payments", until.Format(time.TimeOnly)), err.Error())

		time.Sleep(3 * time.Second)
		probes := holdPermits(t, b, 3)
		err = b.Run(bg(), succeed)
		require.ErrorAs(t, err, &e)
		require.Equal(t, breaker.HalfOpen, e.State)
		require.Equal(t, time.Now().Add(10*time.Second), e.Until)
		require.Less(t, e.RetryAfter(), time.Second, "the probes may be answered soon")
		require.Equal(t, `breaker "payments" is half-open and all its probes are in flight (failure rate 100% of 20 calls, limit 50%)`, err.Error())
		time.Sleep(time.Minute)
		require.Equal(t, time.Millisecond, e.RetryAfter(), "it has passed")
		require.True(t, probes[0].Record(bg(), nil, breaker.Success))
	})
}

func TestConfigNamesWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		config breaker.Config
		want   string
	}{
		{breaker.Config{FailureRate: math.NaN()}, "breaker: FailureRate is NaN, must be above 0 and at most 1, or Off"},
		{breaker.Config{FailureRate: -0.5}, "breaker: FailureRate is -0.5, must be above 0 and at most 1, or Off"},
		{breaker.Config{FailureRate: 1.01}, "breaker: FailureRate is 1.01, must be above 0 and at most 1, or Off"},
		{breaker.Config{FailureRate: math.Inf(1)}, "breaker: FailureRate is +Inf, must be above 0 and at most 1, or Off"},
		{breaker.Config{MinCalls: -2}, "breaker: MinCalls is -2, must be at least 1"},
		{breaker.Config{Window: -time.Second}, "breaker: Window and Buckets: window: Span is -1s, must lie between 1ms and 720h0m0s"},
		{breaker.Config{Buckets: -1}, "breaker: Window and Buckets: window: Buckets is -1, must lie between 1 and 100000"},
		{breaker.Config{Cooldown: -2}, "breaker: Cooldown is -2ns, must not be negative, or Off"},
		{breaker.Config{Probes: -1}, "breaker: Probes is -1, must lie between 1 and 10000"},
		{breaker.Config{Probes: 10_001}, "breaker: Probes is 10001, must lie between 1 and 10000"},
		{breaker.Config{ProbeTimeout: -1}, "breaker: ProbeTimeout is -1ns, must not be negative"},
		{breaker.Config{MinCalls: -2, Probes: -1}, "breaker: MinCalls is -2, must be at least 1\nbreaker: Probes is -1, must lie between 1 and 10000"},
	} {
		require.EqualError(t, c.config.Validate(), c.want)
		require.PanicsWithError(t, c.want, func() { breaker.New("b", c.config) })
	}
	require.NoError(t, breaker.Config{}.Validate())
	require.NoError(t, breaker.Config{FailureRate: breaker.Off, MinCalls: 1, Cooldown: breaker.Off}.Validate())
}

func TestCooldownOffTriesWithTheNextCall(t *testing.T) {
	b := breaker.New("b", breaker.Config{Recovery: breaker.Off, MinCalls: 1, Cooldown: breaker.Off, Probes: 1})
	run(t, b, 1, fail)
	require.Equal(t, breaker.HalfOpen, b.State())
	run(t, b, 1, succeed)
	require.Equal(t, breaker.Closed, b.State())
}

func TestEndlessCooldownDoesNotOverflow(t *testing.T) {
	b := breaker.New("b", breaker.Config{MinCalls: 1, Cooldown: math.MaxInt64, ProbeTimeout: math.MaxInt64})
	run(t, b, 1, fail)
	require.Equal(t, breaker.Open, b.State())
	requireRefused(t, b)
}

// Scenario B69.
func TestValidateNamesAllFaultsTogether(t *testing.T) {
	err := breaker.Config{
		FailureRate: 2, SlowRate: math.NaN(), SlowCall: -1, ConsecutiveFailures: -5, MinCalls: -9, LastCalls: -1,
		Cooldown: -9, CooldownFactor: 0.5, MaxCooldown: -1, CooldownJitter: 2, MaxRetryAfter: -9, Probes: -1, ProbeTimeout: -1,
		HalfOpenTimeout: -1, Force: breaker.HalfOpen,
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
breaker: Force is "half_open", must be forced_open, forced_closed, disabled or shadow`)
	for _, c := range []breaker.Config{
		{SlowRate: 0.5},
		{LastCalls: 5, Window: 1},
		{MaxCooldown: 1, Cooldown: 2},
		{MaxCooldown: time.Second - 1},
		{CooldownFactor: math.Inf(1)},
		{CooldownJitter: math.NaN()},
		{CooldownFactor: math.NaN()},
		{Force: "trial"},
		{SlowRate: -0.2, SlowCall: 1},
	} {
		require.Error(t, c.Validate(), "%+v", c)
	}
}

// Scenario B66.
func TestCallsOfAnyTypeShareABreaker(t *testing.T) {
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

// Other breakers leave goroutines and timers behind.
func TestNoGoroutineOrTimerRemains(t *testing.T) {
	before := runtime.NumGoroutine()
	kept := make([]weak.Pointer[breaker.Breaker], testenv.Repeat(100_000, 5_000))
	for i := range kept {
		b := breaker.New("b", breaker.Config{MinCalls: 1})
		_ = b.Run(bg(), fail)
		kept[i] = weak.Make(b)
	}
	runtime.GC()
	for _, b := range kept {
		require.Nil(t, b.Value(), "a goroutine or a timer still has the breaker")
	}
	require.LessOrEqual(t, runtime.NumGoroutine(), before+1)
}
