package breaker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
)

// Scenario A42.
func TestOverridesAndTheStateUnderneath(t *testing.T) {
	s := runScript(t, breaker.Config{Recovery: breaker.Off, MinCalls: 5, Cooldown: 5 * time.Second, Probes: 1}, "0 SS .. closed")
	force := func(state breaker.State) { s.b.ForceAt(s.now, state, "") }

	force(breaker.ForcedClosed)
	s.do("0 EEEEEEEE ........ forced_closed 100 0 8 8 0")
	s.b.ReleaseAt(s.now)
	s.do("0 - - closed -1 0 0 0 0", "0 EEEE .... closed", "0 E . open") // judged from here on

	force(breaker.ForcedOpen) // over an open breaker, whose cooldown continues
	s.do("1 S r forced_open")
	force(breaker.Shadow)
	s.do("2 S . shadow")
	s.b.ReleaseAt(s.now)
	s.do("2 S r open 100 0 5 5 1", "5 A . half_open")

	force(breaker.ForcedOpen) // over a half-open breaker, whose probe is late then
	s.do("6 g ! forced_open")
	s.b.ReleaseAt(s.now)
	s.do("6 - - half_open", "6 S . closed")

	force(breaker.ForcedOpen) // meanwhile actions by hand change the state underneath
	s.b.OpenForAt(s.now, time.Hour)
	s.do("7 S r forced_open")
	s.b.ReleaseAt(s.now)
	s.do("7 S r open")
	force(breaker.ForcedOpen)
	s.b.ResetAt(s.now)
	s.do("8 S r forced_open")
	s.b.ReleaseAt(s.now)
	s.do("8 S . closed")
	s.b.ReleaseAt(s.now)
	s.do("8 S . closed")
}

// Scenarios B17 to B19.
func TestResetClosesAndClearsTheWindow(t *testing.T) {
	s := runScript(t, configWithoutSlow(), "0 SE .. closed -1 1 2 1 0")
	s.b.ResetAt(s.now)
	s.do("0 - - closed -1 0 0 0 0")
	require.Empty(t, s.changes(), "the same state again is no change")
	s.do("0 EEEEE ..... open")
	s.b.ResetAt(s.now)
	s.do("0 SS .. closed -1 2 2 0 0")
	s.b.ResetAt(s.now)
	s.do("0 - - closed -1 0 0 0 0")
}

// Scenario B20.
func TestDisabledCountsNothing(t *testing.T) {
	s := runScript(t, configWithoutSlow())
	s.b.ForceAt(s.now, breaker.Disabled, "")
	s.do("0 EEEES !!!!! disabled -1 0 0 0 0") // none counts
	require.Equal(t, []breaker.State{breaker.Disabled}, s.changes())
	require.Zero(t, s.b.Totals())
	require.Zero(t, s.b.StatsNow().Late)
}

// Scenario B21.
func TestForcedOpenRefusesAtAnyTime(t *testing.T) {
	s := runScript(t, configWithoutSlow())
	s.b.ForceAt(s.now, breaker.ForcedOpen, "")
	s.do("0 S r forced_open", "6 S r forced_open -1 0 0 0 2", "100000 S r forced_open")
	_, err := s.b.AllowAt(s.now)
	require.EqualError(t, err, `breaker "b" is forced open`)
	require.ErrorIs(t, s.b.CheckAt(s.now), breaker.ErrOpen)
	require.True(t, s.b.Tripped())
}

// Scenarios B22 to B24.
func TestShadowTellsWhatItWouldDo(t *testing.T) {
	var told []string
	c := scenarioConfig()
	c.OnChange = func(c breaker.Change) { told = append(told, c.String()) }
	s := runScript(t, c, "0 SS .. closed")
	s.b.ForceAt(s.now, breaker.Shadow, "")
	s.do("0 - - shadow -1 0 0 0 0", "0 EEESS ..... shadow 60 2 5 3 0", "0 E . shadow 66.7 2 6 4 0")
	require.Equal(t, []string{
		"closed to shadow: forced",
		"shadow to shadow: would open: failure rate 60% of 5 calls, limit 50%",
	}, told)
	stats := s.b.StatsAt(s.now)
	require.Equal(t, int64(1), stats.ShadowOpened)
	require.Equal(t, int64(1), stats.ShadowRefused, "one call came while it would have been open")

	c = scenarioConfig()
	c.Window, c.Buckets = time.Minute, 60
	s = runScript(t, c)
	s.b.ForceAt(s.now, breaker.Shadow, "")
	s.do("0 eeeee ..... shadow")
	require.Equal(t, int64(1), s.b.StatsAt(s.now).ShadowOpened)
}

// Scenario B25.
func TestHalfOpenCannotBeForced(t *testing.T) {
	s := runScript(t, configWithoutSlow())
	for _, state := range []breaker.State{breaker.Closed, breaker.Open, breaker.HalfOpen} {
		require.PanicsWithValue(t, fmt.Sprintf("breaker: %q is not an override", state), func() { s.b.Force(state, "") })
	}
	require.Panics(t, func() { s.b.Force(breaker.State("trial"), "") })
	s.do("0 - - closed")
}

// Scenario B26.
func TestTheSameStateAgainIsNotAChange(t *testing.T) {
	s := runScript(t, configWithoutSlow())
	for range 2 {
		s.b.OpenForAt(s.now, time.Hour)
	}
	for _, state := range []breaker.State{breaker.Disabled, breaker.Shadow, breaker.ForcedClosed, breaker.ForcedOpen} {
		s.b.ForceAt(s.now, state, "")
		s.b.ForceAt(s.now, state, "")
	}
	for range 2 {
		s.b.ReleaseAt(s.now)
		s.b.ResetAt(s.now)
	}
	require.Equal(t, []breaker.State{
		breaker.Open, breaker.Disabled, breaker.Shadow, breaker.ForcedClosed, breaker.ForcedOpen, breaker.Open, breaker.Closed,
	}, s.changes())
}

// Scenario B28.
func TestForceOfANewBreaker(t *testing.T) {
	for state, want := range map[breaker.State]string{
		"": "0 S . closed", breaker.ForcedOpen: "0 S r forced_open",
		breaker.ForcedClosed: "0 S . forced_closed", breaker.Shadow: "0 S . shadow", breaker.Disabled: "0 S ! disabled",
	} {
		c := configWithoutSlow()
		c.Force = state
		s := runScript(t, c, want)
		require.Empty(t, s.changes())
		c.Force = ""
		require.NoError(t, s.b.ReconfigureAt(s.now, c))
		require.Equal(t, breaker.Closed, s.b.StateAt(s.now))
	}
}

// Scenarios B62 and B63.
func TestAForcedOpenBreakerIsIsolated(t *testing.T) {
	s := runScript(t, configWithoutSlow())
	s.b.ForceAt(s.now, breaker.ForcedOpen, "")
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
