package breaker_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/window"
)

func TestBoundsAreInclusive(t *testing.T) {
	for _, c := range []breaker.Config{
		{LastCalls: 1}, {LastCalls: 100_000}, {CooldownJitter: 1}, {Probes: 1}, {Probes: 10_000}, {Force: breaker.Shadow},
	} {
		require.NoError(t, c.Validate(), "%+v", c)
	}
	for _, state := range []breaker.State{"trial", "Open", breaker.Closed, breaker.HalfOpen, "evicted"} {
		require.EqualError(t, breaker.Config{Force: state}.Validate(), fmt.Sprintf(
			"breaker: Force is %q, must be forced_open, forced_closed, disabled or shadow", state))
	}
	require.ErrorContains(t, breaker.GroupConfig{MaxSeries: 50_001}.Validate(),
		"MaxSeries is 50001, must be at least 1", "one more than half of the default members")
}

func TestAnEndlessCooldownDoesNotEnd(t *testing.T) {
	b := breaker.NewAt("b", breaker.Config{}, t0)
	b.OpenForAt(t0, math.MaxInt64)
	for _, d := range []time.Duration{0, 24 * time.Hour, 100 * 365 * 24 * time.Hour} {
		require.Equal(t, breaker.Open, b.StateAt(after(d)), d)
		require.ErrorIs(t, b.CheckAt(after(d)), breaker.ErrOpen, d)
	}
}

// breakerWithSharedCounts makes one successful call through a breaker with the given shared counts.
func breakerWithSharedCounts(t *testing.T, c breaker.Config, seen window.Counts) *breaker.Breaker {
	t.Helper()
	c.SharedCounts = func() window.Counts { return seen }
	b := breaker.New("b", c)
	run(t, b, 1, succeed)
	return b
}

func TestARateIsExactToABillionth(t *testing.T) {
	for _, c := range []struct {
		rate     float64
		failures int64
		want     breaker.State
	}{
		{0.5, 499_999_999, breaker.Closed},
		{0.5, 500_000_000, breaker.Open},
		{0.57, 569_999_999, breaker.Closed},
		{0.57, 570_000_000, breaker.Open},
		{1, 999_999_999, breaker.Closed},
		{1, 1_000_000_000, breaker.Open},
		{2.0 / 3, 666_666_665, breaker.Closed},
		{2.0 / 3, 666_666_667, breaker.Open},
	} {
		b := breakerWithSharedCounts(t, breaker.Config{FailureRate: c.rate},
			window.Counts{Successes: 1_000_000_000 - c.failures, Failures: c.failures})
		require.Equal(t, c.want, b.State(), "%d of a billion at %v", c.failures, c.rate)
	}
}

func TestNoMoreCallsAreSlowThanThereAre(t *testing.T) {
	var told recorder
	b := breakerWithSharedCounts(t, told.attachTo(breaker.Config{SlowCall: time.Second}), window.Counts{Successes: 20, Slow: 30})
	require.Equal(t, breaker.Open, b.State())
	require.Equal(t, "slow rate 100% of 20 calls, limit 50%, by shared counts", told.changes()[0].Reason)
}

// A result without a RetryAfter moves no deadline, even if a later result was recorded before it.
func TestOnlyARetryAfterThatWasSetHolds(t *testing.T) {
	b := breaker.NewAt("b", breaker.Config{MinCalls: 2, Cooldown: breaker.Off}, t0)
	for _, c := range []struct {
		at float64
		o  breaker.Outcome
	}{{10.9, breaker.Success}, {10.5, breaker.Failure}} {
		p, err := b.AllowAt(after(secondsOf(c.at)))
		require.NoError(t, err)
		require.True(t, p.RecordAt(after(secondsOf(c.at)), c.o))
	}
	require.Equal(t, breaker.HalfOpen, b.StateAt(after(secondsOf(10.6))), "it opened at 10.5 s for no time at all")
}

// A call that hangs is slow when it ends, and not before.
func TestCallsInFlightAreNotSlow(t *testing.T) {
	c := breaker.Config{SlowCall: time.Second, MinCalls: 20}
	runScript(t, c, "0 AAAAAAAAAAAAAAAAAAAA .................... closed", "3.1 S . closed")
}

// Allow compares no rate. The rates are compared at the next result.
func TestAllowOpensNothing(t *testing.T) {
	c := breaker.Config{SlowCall: time.Second, MinCalls: 4}
	s := runScript(t, c, "0 SSSSSSSSS ......... closed", "1 ssss .... closed")
	s.do("10.5 A . closed") // the fast ones have left the window
	s.requireSlow(4)
	s.do("10.5 g . open")
}

func TestRefusalsOfAHalfOpenBreakerShareOneError(t *testing.T) {
	b := breaker.New("b", breaker.Config{MinCalls: 1, Cooldown: breaker.Off, Probes: 1})
	run(t, b, 1, fail)
	holdPermits(t, b, 1)
	first := b.Run(bg(), succeed)
	require.ErrorIs(t, first, breaker.ErrOpen)
	for range 3 {
		require.Same(t, first, b.Run(bg(), succeed))
		require.Same(t, first, b.Check())
	}
	require.Zero(t, testing.AllocsPerRun(100, func() { _ = b.Run(bg(), succeed) }))
}

// The window has ten buckets of a second. A call leaves the window after nine to ten seconds, no
// matter at which time of its bucket it was counted.
func TestTheWindowCoversAtLeastAllButOneBucket(t *testing.T) {
	for _, came := range []int{0, 1, 500, 999, 1000, 12_345} {
		b := breaker.NewAt("b", breaker.Config{Window: 10 * time.Second, Buckets: 10}, t0)
		require.NoError(t, modelMakeCall(b, 0, breaker.Ignored))
		require.NoError(t, modelMakeCall(b, came, breaker.Failure))
		require.Equal(t, int64(1), b.CountsAt(modelTimeAt(came+9000)).Failures, "came at %d ms", came)
		require.Zero(t, b.CountsAt(modelTimeAt(came+10_000)).Failures, "came at %d ms", came)
	}
}
