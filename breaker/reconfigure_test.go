package breaker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
)

// Scenario A43.
func TestReconfigureKeepsCallsCooldownAndProbes(t *testing.T) {
	c := breaker.Config{Recovery: breaker.Off, MinCalls: 5, Cooldown: 5 * time.Second, Probes: 2, Window: 20 * time.Second}
	s := runScript(t, c, "0 AA .. closed", "0 EEEE .... closed")

	c.MinCalls, c.FailureRate = 6, 0.9 // the same window keeps its calls, and calls in flight count
	require.NoError(t, s.b.ReconfigureAt(s.now, c))
	s.do("0 - - closed -1 0 4 4 0", "1 b . closed", "1 b . open")

	c.Cooldown, c.Probes = time.Hour, 1 // an open breaker keeps its present cooldown
	require.NoError(t, s.b.ReconfigureAt(s.now, c))
	s.do("5.9 S r open", "6 AS .r half_open")

	c.Probes = 3 // the probe in flight keeps its slot
	require.NoError(t, s.b.ReconfigureAt(s.now, c))
	s.do("6 AAS ..r half_open", "6 ggg ... closed")

	// a different window begins empty, and totals are kept
	c.LastCalls, c.Window, c.MinCalls = 3, 0, 3
	before := s.b.Totals()
	s.do("6 AE .. closed")
	require.NoError(t, s.b.ReconfigureAt(s.now, c))
	s.do("7 - - closed -1 0 0 0 0", "7 b . closed -1 0 1 1 0")
	require.Equal(t, before.Failures+2, s.b.Totals().Failures)
	s.do("7 EE .. open")

	bad := s.b.ReconfigureAt(s.now, breaker.Config{Recovery: breaker.Off, Probes: -1})
	require.EqualError(t, bad, "breaker: Probes is -1, must lie between 1 and 10000")
	s.do("7 - - open")
}

func TestReconfigureChangesSlowCallAndOnChange(t *testing.T) {
	var told []string
	c := breaker.Config{MinCalls: 2, SlowCall: time.Second, OnChange: func(breaker.Change) { told = append(told, "old") }}
	s := runScript(t, c, "0 ss .. open")
	s.b.ResetAt(s.now)
	c.SlowCall = 10 * time.Second
	c.OnChange = func(breaker.Change) { told = append(told, "new") }
	require.NoError(t, s.b.ReconfigureAt(s.now, c))
	s.do("4 ss .. closed") // two seconds each
	s.requireSlow(0)
	s.do("10 EE .. open")
	require.Equal(t, []string{"old", "old", "new"}, told)
	c.SlowCall = 0
	require.NoError(t, s.b.ReconfigureAt(s.now, c))
}
