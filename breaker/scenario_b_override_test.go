package breaker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
)

func TestScenarioB17B18B19_Reset(t *testing.T) {
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

func TestScenarioB20_Disabled(t *testing.T) {
	s := runScript(t, configWithoutSlow())
	s.b.ForceAt(s.now, breaker.Disabled)
	s.do("0 EEEES !!!!! disabled -1 0 0 0 0") // none counts
	require.Equal(t, []breaker.State{breaker.Disabled}, s.changes())
	require.Zero(t, s.b.Totals())
	require.Zero(t, s.b.StatsNow().Late)
}

func TestScenarioB21_ForcedOpen(t *testing.T) {
	s := runScript(t, configWithoutSlow())
	s.b.ForceAt(s.now, breaker.ForcedOpen)
	s.do("0 S r forced_open", "6 S r forced_open -1 0 0 0 2", "100000 S r forced_open")
	_, err := s.b.AllowAt(s.now)
	require.EqualError(t, err, `breaker "b" is forced open`)
	require.ErrorIs(t, s.b.CheckAt(s.now), breaker.ErrOpen)
	require.True(t, s.b.Tripped())
}

func TestScenarioB22B23B24_Shadow(t *testing.T) {
	var told []string
	c := scenarioConfig()
	c.OnChange = func(c breaker.Change) { told = append(told, c.String()) }
	s := runScript(t, c, "0 SS .. closed")
	s.b.ForceAt(s.now, breaker.Shadow)
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
	s.b.ForceAt(s.now, breaker.Shadow)
	s.do("0 eeeee ..... shadow")
	require.Equal(t, int64(1), s.b.StatsAt(s.now).ShadowOpened)
}

func TestScenarioB25_NoHalfOpenByForce(t *testing.T) {
	s := runScript(t, configWithoutSlow())
	for _, state := range []breaker.State{breaker.Closed, breaker.Open, breaker.HalfOpen} {
		require.PanicsWithValue(t, fmt.Sprintf("breaker: %q is not an override", state), func() { s.b.Force(state) })
	}
	require.Panics(t, func() { s.b.Force(breaker.State("trial")) })
	s.do("0 - - closed")
}

func TestScenarioB26_TheSameStateAgainIsNotAChange(t *testing.T) {
	s := runScript(t, configWithoutSlow())
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

func TestScenarioB28_InitialStates(t *testing.T) {
	for state, want := range map[breaker.State]string{
		breaker.Closed: "0 S . closed", breaker.Open: "0 S r open", breaker.ForcedOpen: "0 S r forced_open",
		breaker.ForcedClosed: "0 S . forced_closed", breaker.Shadow: "0 S . shadow", breaker.Disabled: "0 S ! disabled",
	} {
		c := configWithoutSlow()
		c.Initial = state
		s := runScript(t, c, want)
		require.Empty(t, s.changes())
		s.b.ReleaseAt(s.now)
		if state != breaker.Open {
			require.Equal(t, breaker.Closed, s.b.StateAt(s.now))
		}
	}
	c := configWithoutSlow()
	c.Initial = breaker.Open
	runScript(t, c, "4.9 S r open", "5 SSSS .... closed")
}

func TestScenarioB62B63_Isolated(t *testing.T) {
	s := runScript(t, configWithoutSlow())
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
