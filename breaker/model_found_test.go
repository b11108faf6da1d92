package breaker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/window"
)

// The shortest form of each fault that the model and the interleaving tests have found. Times are
// in milliseconds after t0.

func modelTimeAt(n int) time.Time { return t0.Add(time.Duration(n) * ms) }

// modelMakeCall makes a call at the time given and returns its error.
func modelMakeCall(b *breaker.Breaker, at int, o breaker.Outcome) error {
	p, err := b.AllowAt(modelTimeAt(at))
	if err == nil {
		p.RecordAt(modelTimeAt(at), o)
	}
	return err
}

func TestRegressionAConfigGivenWhileABreakerOpensStands(t *testing.T) {
	var b *breaker.Breaker
	lasting := breaker.Config{Cooldown: time.Hour, LastCalls: 10}
	b = breaker.NewAt("b", breaker.Config{Trip: func(window.Counts) (string, bool) {
		require.NoError(t, b.ReconfigureAt(t0, lasting))
		return "enough", true
	}}, t0)
	require.NoError(t, modelMakeCall(b, 0, breaker.Failure))
	require.Equal(t, breaker.Open, b.StateAt(modelTimeAt(10_000)), "the new cooldown is an hour")
	require.Equal(t, int64(1), b.Totals().Failures)
}

func TestRegressionTheCountsOfAnOpeningAreThoseOfCalls(t *testing.T) {
	var held []*breaker.Permit
	var told recorder
	b := breaker.NewAt("b", told.attachTo(breaker.Config{SlowCall: ms, Trip: func(window.Counts) (string, bool) {
		late := held
		held = nil
		for _, p := range late { // results that come while the call is judged
			p.RecordAt(modelTimeAt(10), breaker.Failure)
		}
		return "enough", len(late) > 0
	}}), t0)
	for range 3 {
		p, err := b.AllowAt(t0)
		require.NoError(t, err)
		held = append(held, &p)
	}
	require.NoError(t, modelMakeCall(b, 10, breaker.Failure))
	c := told.changes()[0].Counts
	require.True(t, modelIsSound(c), "%+v", c)
}

func TestRegressionAHalfOpenErrorSaysWhenASlotFallsFree(t *testing.T) {
	b := breaker.NewAt("b", breaker.Config{MinCalls: 1, Probes: 1, ProbeTimeout: time.Second, Cooldown: 10 * ms}, t0)
	require.NoError(t, modelMakeCall(b, 0, breaker.Failure))
	// half-open for almost a minute, and this is the first call
	_, err := b.AllowAt(modelTimeAt(60_000))
	require.NoError(t, err)
	err = modelMakeCall(b, 60_001, breaker.Success)
	var e *breaker.OpenError
	require.ErrorAs(t, err, &e)
	require.Equal(t, modelTimeAt(61_000), e.Until)
}

func TestRegressionCheckRefusesAsAllowWould(t *testing.T) {
	b := breaker.NewAt("b", breaker.Config{MinCalls: 1, Cooldown: 100 * ms, HalfOpenTimeout: 10 * ms}, t0)
	require.NoError(t, modelMakeCall(b, 0, breaker.Failure))
	_, err := b.AllowAt(modelTimeAt(100))
	require.NoError(t, err)
	require.Equal(t, breaker.Open, b.StateAt(modelTimeAt(111)), "half-open gave up")
	check := b.CheckAt(modelTimeAt(111))
	var e *breaker.OpenError
	require.ErrorAs(t, check, &e)
	require.Equal(t, breaker.Open, e.State)
	require.Equal(t, modelTimeAt(210), e.Until)
	require.Equal(t, int64(1), b.CountsAt(modelTimeAt(111)).Refused)
	_, err = b.AllowAt(modelTimeAt(111))
	require.Equal(t, err, check)
}

func TestRegressionFewerProbesDoNotBlockAHalfOpenBreaker(t *testing.T) {
	c := breaker.Config{Recovery: breaker.Off, MinCalls: 5, ConsecutiveFailures: 1, Cooldown: 10 * ms, Probes: 3}
	b := breaker.NewAt("b", c, t0)
	require.NoError(t, modelMakeCall(b, 0, breaker.Failure))
	require.NoError(t, modelMakeCall(b, 10, breaker.Success))
	require.NoError(t, modelMakeCall(b, 11, breaker.Success))
	c.Probes = 2
	require.NoError(t, b.ReconfigureAt(modelTimeAt(12), c))
	require.NoError(t, modelMakeCall(b, 3_600_000, breaker.Success), "an hour later")
	require.Equal(t, breaker.Closed, b.StateAt(modelTimeAt(3_600_000)))
}

func TestRegressionReconfigureKeepsTransitionsThatWereDue(t *testing.T) {
	c := breaker.Config{MinCalls: 1, Cooldown: 100 * ms}
	b := breaker.NewAt("b", c, t0)
	require.NoError(t, modelMakeCall(b, 0, breaker.Failure))
	require.Equal(t, breaker.HalfOpen, b.StateAt(modelTimeAt(1060)))
	c.HalfOpenTimeout = 50 * ms
	require.NoError(t, b.ReconfigureAt(modelTimeAt(1060), c))
	require.Equal(t, breaker.HalfOpen, b.StateAt(modelTimeAt(1060)), "it keeps its state")
}

func TestRegressionReconfigureHoldsUnderAnOverride(t *testing.T) {
	c := breaker.Config{MinCalls: 1, Cooldown: 100 * ms}
	b := breaker.NewAt("b", c, t0)
	require.NoError(t, modelMakeCall(b, 0, breaker.Failure))
	b.ForceAt(modelTimeAt(1), breaker.ForcedOpen, "")
	c.HalfOpenTimeout = 50 * ms
	require.NoError(t, b.ReconfigureAt(modelTimeAt(2), c))
	b.ReleaseAt(modelTimeAt(160)) // open until 100
	_, err := b.AllowAt(modelTimeAt(160))
	require.NoError(t, err)
	require.Equal(t, breaker.Open, b.StateAt(modelTimeAt(210)), "50 ms after the probe")
}

func TestRegressionAStreakOutlivesItsWindow(t *testing.T) {
	c := breaker.Config{ConsecutiveFailures: 3}
	b := breaker.NewAt("b", c, t0)
	require.NoError(t, modelMakeCall(b, 0, breaker.Failure))
	require.NoError(t, modelMakeCall(b, 1, breaker.Failure))
	c.LastCalls = 50
	require.NoError(t, b.ReconfigureAt(modelTimeAt(2), c))
	require.Equal(t, int64(2), b.Totals().ConsecutiveFailures)
	require.NoError(t, modelMakeCall(b, 3, breaker.Failure))
	require.Equal(t, breaker.Open, b.StateAt(modelTimeAt(3)), "three in a row")
}

func TestRegressionTheStreakOfAnOpeningBeganWhenTheBreakerClosed(t *testing.T) {
	var asked window.Counts
	c := breaker.Config{MinCalls: 2, Trip: func(c window.Counts) (string, bool) { asked = c; return "", false }}
	b := breaker.NewAt("b", c, t0)
	require.NoError(t, modelMakeCall(b, 0, breaker.Failure))
	b.ResetAt(modelTimeAt(1))
	require.NoError(t, modelMakeCall(b, 2, breaker.Failure))
	require.Equal(t, int64(1), b.CountsAt(modelTimeAt(2)).ConsecutiveFailures)
	require.Equal(t, int64(1), asked.ConsecutiveFailures, "as Trip sees it")
	require.NoError(t, modelMakeCall(b, 3, breaker.Failure))
	require.Equal(t, window.Counts{Failures: 2, ConsecutiveFailures: 2}, b.CountsAt(modelTimeAt(3)))
}

func TestRegressionAShadowRespectsRetryAfter(t *testing.T) {
	b := breaker.NewAt("b", breaker.Config{MinCalls: 1, Cooldown: 10 * ms, Force: breaker.Shadow}, t0)
	p, err := b.AllowAt(t0)
	require.NoError(t, err)
	p.SetRetryAfter(time.Second)
	p.RecordAt(t0, breaker.Failure)
	require.NoError(t, modelMakeCall(b, 500, breaker.Success))
	require.Equal(t, int64(1), b.StatsAt(modelTimeAt(500)).ShadowRefused)
}

// The tests below use stale times, which move no deadline and add no capacity.

func TestRegressionAStaleProbeKeepsItsSlotAsLong(t *testing.T) {
	b := breaker.NewAt("b", breaker.Config{MinCalls: 1, Probes: 1, ProbeTimeout: 100 * ms, Cooldown: 10 * ms}, t0)
	require.NoError(t, modelMakeCall(b, 0, breaker.Failure))
	b.OpenForAt(modelTimeAt(1000), 0)
	_, err := b.AllowAt(modelTimeAt(1000))
	require.NoError(t, err)
	b.OpenForAt(modelTimeAt(1000), 0)
	b.ForceAt(modelTimeAt(1010), breaker.Disabled, "")
	b.ReleaseAt(modelTimeAt(1010)) // half-open from 1010 on
	_, err = b.AllowAt(modelTimeAt(900))
	require.NoError(t, err)
	require.ErrorIs(t, modelMakeCall(b, 1050, breaker.Success), breaker.ErrOpen, "the place was lent for 100 ms")
}

func TestRegressionAnOverrideAtAStaleTimeBeginsNow(t *testing.T) {
	b := breaker.NewAt("b", breaker.Config{}, t0)
	require.NoError(t, modelMakeCall(b, 60_000, breaker.Success))
	b.OpenForAt(modelTimeAt(100), 500*ms)
	require.Equal(t, breaker.Open, b.StateAt(modelTimeAt(60_400)), "for 500 ms from the newest moment known")
}

func TestRegressionNothingWouldBeRefusedBeforeItBegan(t *testing.T) {
	b := breaker.NewAt("b", breaker.Config{Force: breaker.Shadow}, t0)
	require.NoError(t, modelMakeCall(b, -1, breaker.Success))
	require.Zero(t, b.StatsAt(t0).ShadowRefused)
}

func TestRegressionMaxRetryAfterOffIgnoresRetryAfter(t *testing.T) {
	c := breaker.Config{MinCalls: 2, Cooldown: breaker.Off, MaxRetryAfter: breaker.Off}
	b := breaker.NewAt("b", c, t0)
	p, err := b.AllowAt(modelTimeAt(900))
	require.NoError(t, err)
	p.SetRetryAfter(time.Hour)
	require.True(t, p.RecordAt(modelTimeAt(900), breaker.Success))
	require.NoError(t, modelMakeCall(b, 800, breaker.Failure))
	require.Equal(t, breaker.HalfOpen, b.StateAt(modelTimeAt(850)))
}

func TestRegressionAResultAtAStaleTimeBeginsNoSample(t *testing.T) {
	b := breaker.NewAt("b", breaker.Config{}, t0)
	held := requireAllowed(t, b, 0)
	for range 64 {
		require.NoError(t, modelMakeCall(b, 1, breaker.Success))
	}
	require.False(t, b.Sampled())
	require.True(t, held.RecordAt(modelDate(modelStale), breaker.Ignored))
	require.False(t, b.Sampled())
}
