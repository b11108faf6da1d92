package breaker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/window"
)

func TestScenarioA42_OverridesAndTheStateUnderneath(t *testing.T) {
	s := runScript(t, breaker.Config{Recovery: breaker.Off, MinCalls: 5, Cooldown: 5 * time.Second, Probes: 1}, "0 SS .. closed")
	force := func(state breaker.State) { s.b.ForceAt(s.now, state) }

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

func TestScenarioA43_Reconfigure(t *testing.T) {
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
	c := breaker.Config{MinCalls: 2, SlowCall: time.Second, HungCalls: true, OnChange: func(breaker.Change) { told = append(told, "old") }}
	s := runScript(t, c, "0 ss .. open")
	s.b.ResetAt(s.now)
	c.SlowCall = 10 * time.Second
	c.OnChange = func(breaker.Change) { told = append(told, "new") }
	require.NoError(t, s.b.ReconfigureAt(s.now, c))
	s.do("4 ss .. closed") // two seconds each
	s.requireSlow(0)
	s.do("10 EE .. open")
	require.Equal(t, []string{"old", "old", "new"}, told)
	c.SlowCall, c.HungCalls = 0, false
	require.NoError(t, s.b.ReconfigureAt(s.now, c))
}

func TestTripAndSharedCountsAreCalled(t *testing.T) {
	var asked []window.Counts
	fleet := window.Counts{Successes: 100}
	var told recorder
	b := breaker.New("b", told.attachTo(breaker.Config{
		FailureRate: 0.5, MinCalls: 50,
		Trip: func(c window.Counts) (string, bool) {
			asked = append(asked, c)
			return fmt.Sprintf("%d failures", c.Failures), c.Failures >= 3
		},
		SharedCounts: func() window.Counts { return fleet },
	}))
	run(t, b, 1, succeed)
	run(t, b, 2, fail)
	require.Equal(t, breaker.Closed, b.State())
	require.Equal(t, []int64{0, 1, 2}, []int64{asked[0].Failures, asked[1].Failures, asked[2].Failures})
	run(t, b, 1, fail)
	require.Equal(t, "3 failures", told.changes()[0].Reason)
	require.Equal(t, "calls", told.changes()[0].Origin())

	b.Reset()
	fleet.Failures = 200
	run(t, b, 1, succeed)
	last := told.changes()[2]
	require.Equal(t, "failure rate 66.7% of 300 calls, limit 50%, by shared counts", last.Reason)
	require.Equal(t, "shared_counts", last.Origin())
}
