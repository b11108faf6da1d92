package breaker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
)

// requireAllowed requires that a call passes at the time given, in milliseconds after t0.
func requireAllowed(t *testing.T, b *breaker.Breaker, at int) *breaker.Permit {
	t.Helper()
	p, err := b.AllowAt(modelTimeAt(at))
	require.NoError(t, err, "at %d ms", at)
	return &p
}

func TestOneCallPerMinuteFindsABreakerHalfOpen(t *testing.T) {
	c := breaker.Config{ConsecutiveFailures: 3, Cooldown: 5 * time.Second, HalfOpenTimeout: 10 * time.Second, Probes: 1}
	well, down := breaker.NewAt("b", c, t0), breaker.NewAt("b", c, t0)
	for minute := range 1440 {
		at := minute*60_000 + minute*37%6000 // at no round second
		requireAllowed(t, down, at).RecordAt(modelTimeAt(at), breaker.Failure)
		o := breaker.Success
		if minute < 3 {
			o = breaker.Failure // three bad minutes, and only successes afterwards
		}
		requireAllowed(t, well, at).RecordAt(modelTimeAt(at), o)
	}
	require.Equal(t, breaker.Closed, well.StateAt(modelTimeAt(1440*60_000)))
	require.True(t, down.Tripped())
}

func TestTheHalfOpenTimeoutRunsFromTheFirstProbe(t *testing.T) {
	c := breaker.Config{MinCalls: 1, Cooldown: 5 * time.Second, HalfOpenTimeout: time.Second, Probes: 2, ProbeTimeout: time.Minute}
	b := breaker.NewAt("b", c, t0)
	requireAllowed(t, b, 0).RecordAt(t0, breaker.Failure)
	const hour = 3_600_000
	require.Equal(t, breaker.HalfOpen, b.StateAt(modelTimeAt(hour)), "there was no call")
	requireAllowed(t, b, hour)
	requireAllowed(t, b, hour+900) // does not start the timeout again
	err := modelMakeCall(b, hour+999, breaker.Success)
	var e *breaker.OpenError
	require.ErrorAs(t, err, &e)
	require.Equal(t, breaker.HalfOpen, e.State)
	require.Equal(t, modelTimeAt(hour+6000), e.Until, "it gives up, and cools down, before a slot is free again")
	require.Equal(t, breaker.HalfOpen, b.StateAt(modelTimeAt(hour+1000).Add(-1)))
	require.Equal(t, breaker.Open, b.StateAt(modelTimeAt(hour+1000)))
	require.ErrorIs(t, modelMakeCall(b, hour+5999, breaker.Success), breaker.ErrOpen)
	require.NoError(t, modelMakeCall(b, 2*hour, breaker.Success), "half-open again until the next call")
}

func TestAReleasedHalfOpenBreakerWaitsForAProbe(t *testing.T) {
	c := breaker.Config{MinCalls: 1, Cooldown: 100 * ms, HalfOpenTimeout: 500 * ms}
	b := breaker.NewAt("b", c, t0)
	requireAllowed(t, b, 0).RecordAt(t0, breaker.Failure)
	requireAllowed(t, b, 100)
	b.ForceAt(modelTimeAt(200), breaker.Disabled)
	b.ReleaseAt(modelTimeAt(300))
	require.Equal(t, breaker.HalfOpen, b.StateAt(modelTimeAt(650)), "the probe of before began no round of its own")
	require.Equal(t, breaker.HalfOpen, b.StateAt(modelTimeAt(60_000)))
	requireAllowed(t, b, 60_000)
	require.Equal(t, breaker.Open, b.StateAt(modelTimeAt(60_500)))
}

func TestANewHalfOpenTimeoutRunsFromTheNextProbe(t *testing.T) {
	for name, override := range map[string]func(b *breaker.Breaker, end bool){
		"half-open": func(*breaker.Breaker, bool) {},
		"under an override": func(b *breaker.Breaker, end bool) {
			if end {
				b.ReleaseAt(modelTimeAt(200))
			} else {
				b.ForceAt(modelTimeAt(110), breaker.Disabled)
			}
		},
	} {
		c := breaker.Config{MinCalls: 1, Cooldown: 100 * ms}
		b := breaker.NewAt("b", c, t0)
		requireAllowed(t, b, 0).RecordAt(t0, breaker.Failure)
		requireAllowed(t, b, 100)
		override(b, false)
		c.HalfOpenTimeout = 50 * ms
		require.NoError(t, b.ReconfigureAt(modelTimeAt(200), c))
		override(b, true)
		require.Equal(t, breaker.HalfOpen, b.StateAt(modelTimeAt(9_000)), name)
		requireAllowed(t, b, 9_000)
		c.HalfOpenTimeout = 0
		require.NoError(t, b.ReconfigureAt(modelTimeAt(9_001), c))
		require.Equal(t, breaker.HalfOpen, b.StateAt(modelTimeAt(9_100)), "%s: it never gives up now", name)
	}
}

func TestHalfOpenTimeoutRespectsRetryAfter(t *testing.T) {
	c := breaker.Config{MinCalls: 1, Cooldown: 100 * ms, CooldownJitter: breaker.Off, HalfOpenTimeout: 50 * ms}
	b := breaker.NewAt("b", c, t0)
	requireAllowed(t, b, 0).RecordAt(t0, breaker.Failure)
	p := requireAllowed(t, b, 100)
	p.SetRetryAfter(10 * time.Second)
	require.True(t, p.RecordAt(modelTimeAt(100), breaker.Ignored))
	require.ErrorIs(t, modelMakeCall(b, 10_099, breaker.Success), breaker.ErrOpen)
	require.NoError(t, modelMakeCall(b, 10_100, breaker.Success))
}

// probesAllowedNow counts the probes that a half-open breaker allows at t0.
func probesAllowedNow(b *breaker.Breaker) (n int) {
	for ; n < 100; n++ {
		if _, err := b.AllowAt(t0); err != nil {
			return n
		}
	}
	return n
}

func TestReconfigureNeverAllowsMoreProbesThanProbes(t *testing.T) {
	c := breaker.Config{Recovery: breaker.Off, MinCalls: 10, Probes: 3, ProbeTimeout: time.Second}
	b := breaker.NewAt("b", c, t0)
	b.OpenForAt(t0, 0)
	set := func(probes int) {
		c.Probes = probes
		require.NoError(t, b.ReconfigureAt(t0, c))
	}
	require.Equal(t, 3, probesAllowedNow(b))
	for range 5 {
		set(1)
		require.Zero(t, probesAllowedNow(b))
		err := b.CheckAt(t0)
		var e *breaker.OpenError
		require.ErrorAs(t, err, &e)
		require.Equal(t, t0.Add(time.Second), e.Until)
		set(3)
		require.Zero(t, probesAllowedNow(b))
	}
	set(5)
	require.Equal(t, 2, probesAllowedNow(b))
	set(2)
	require.NoError(t, modelMakeCall(b, 1000, breaker.Success), "all five are unheard of, and their places free")
	require.NoError(t, modelMakeCall(b, 1000, breaker.Success))
	require.Equal(t, breaker.Closed, b.StateAt(modelTimeAt(1000)))
}

func TestACooldownOfZeroStaysZeroWithAnyFactor(t *testing.T) {
	b := breaker.NewAt("b", breaker.Config{MinCalls: 1, Probes: 1, Cooldown: breaker.Off, CooldownFactor: 100}, t0)
	for at := range 400 { // 100 to the power of 400 is more than a float64 can hold
		require.NoError(t, modelMakeCall(b, at, breaker.Failure), "round %d", at)
	}
}
