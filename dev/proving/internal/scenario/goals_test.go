package scenario_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/dev/proving/internal/scenario"
	"github.com/weir-go/weir/dev/proving/internal/sim"
)

// row returns a row of one run.
func row(name string, f sim.Figures) scenario.Row {
	return scenario.Row{Guard: sim.Maker{Name: name}, Runs: []sim.Figures{f}}
}

// peer returns the row of a library that is harmless.
func peer(name string, f sim.Figures) scenario.Row {
	r := row(name, f)
	r.Guard.Peer, r.Harmless = true, true
	return r
}

// goalsReached returns the goals of a scenario that a row reaches, in order.
func goalsReached(t *testing.T, name string, own sim.Figures, others ...scenario.Row) (all []bool) {
	t.Helper()
	for _, s := range scenario.All() {
		if s.Name != name {
			continue
		}
		r := row("weir", own)
		rows := append(scenario.Rows{r}, others...)
		for _, g := range s.Goals {
			all = append(all, g.Reached(r, rows))
		}
	}
	require.NotEmpty(t, all, name)
	return all
}

func TestGoalsOfAnOutage(t *testing.T) {
	best := peer("good", sim.Figures{OfferedMeanwhile: 100, SentMeanwhile: 20, OfferedAfter: 100, GoodAfter: 60})
	none := row("none", sim.Figures{OfferedMeanwhile: 100, SentMeanwhile: 100, OfferedAfter: 100, GoodAfter: 100})
	own := sim.Figures{OfferedMeanwhile: 1000, SentMeanwhile: 210, OfferedAfter: 100, GoodAfter: 95, Openings: 1}
	require.Equal(t, []bool{true, true, true}, goalsReached(t, "outage", own, best, none))
	own.SentMeanwhile, own.GoodAfter, own.Openings = 211, 94, 2
	require.Equal(t, []bool{false, false, false}, goalsReached(t, "outage", own, best, none), "none counts among the best, and sends too much")

	harmful := peer("harmful", sim.Figures{OfferedMeanwhile: 100, OfferedAfter: 100, GoodAfter: 100})
	harmful.Harmless = false
	own = sim.Figures{OfferedMeanwhile: 100, SentMeanwhile: 21, OfferedAfter: 100, GoodAfter: 57, Openings: 1}
	require.Equal(t, []bool{true, true, true}, goalsReached(t, "outage", own, best, harmful), "a library that harms is no peer")
}

func TestGoalsOfLostCapacity(t *testing.T) {
	others := []scenario.Row{
		peer("gentle", sim.Figures{Offered: 1000, OfferedMeanwhile: 100, GoodMeanwhile: 40, Failed: 200}),
		peer("strict", sim.Figures{Offered: 1000, OfferedMeanwhile: 100, GoodMeanwhile: 20, Failed: 10}),
		row("oracle", sim.Figures{Offered: 1000, OfferedMeanwhile: 100, GoodMeanwhile: 90}),
	}
	own := sim.Figures{Offered: 1000, OfferedMeanwhile: 100, GoodMeanwhile: 38, Failed: 11}
	for _, name := range []string{"lost-capacity", "fleet-lost-capacity"} {
		require.Equal(t, []bool{true, true}, goalsReached(t, name, own, others...), "the oracle is no peer")
		require.Equal(t, []bool{false, true}, goalsReached(t, name, sim.Figures{Offered: 1000, OfferedMeanwhile: 100, GoodMeanwhile: 37}, others...))
		require.Equal(t, []bool{true, false}, goalsReached(t, name, sim.Figures{Offered: 1000, OfferedMeanwhile: 100, GoodMeanwhile: 50, Failed: 12}, others...))
		require.Equal(t, []bool{true, true}, goalsReached(t, name, own), "without peers nothing bounds the failures")
	}
}

func TestGoalsOfHangAndBlip(t *testing.T) {
	best := peer("best", sim.Figures{Offered: 1000, Good: 900, Failed: 50})
	own := sim.Figures{Offered: 1000, Good: 855, Failed: 55, UntilBack: time.Second}
	require.Equal(t, []bool{true, true, true}, goalsReached(t, "hang", own, best))
	own = sim.Figures{Offered: 1000, Good: 854, Failed: 56, UntilBack: 1001 * time.Millisecond}
	require.Equal(t, []bool{false, false, false}, goalsReached(t, "hang", own, best))
	require.Equal(t, []bool{true, true}, goalsReached(t, "blip", sim.Figures{Offered: 1000, Good: 891, UntilBack: 2 * time.Second}, best))
	require.Equal(t, []bool{false, false}, goalsReached(t, "blip", sim.Figures{Offered: 1000, Good: 890, UntilBack: -1}, best), "never back")
}

func TestGoalsOfAReturn(t *testing.T) {
	possible := row("oracle", sim.Figures{Offered: 1000, OfferedMeanwhile: 100, GoodMeanwhile: 20})
	best := peer("best", sim.Figures{Offered: 1000, Failed: 30, OfferedMeanwhile: 100})
	own := sim.Figures{Offered: 1000, OfferedMeanwhile: 100, GoodMeanwhile: 14, Failed: 30, OpeningsMeanwhile: 2}
	require.Equal(t, []bool{true, true, true}, goalsReached(t, "return", own, possible, best))
	own.GoodMeanwhile, own.Failed, own.OpeningsMeanwhile = 13, 31, 3
	require.Equal(t, []bool{false, false, false}, goalsReached(t, "return", own, possible, best))
	require.Equal(t, []bool{false, false, true}, goalsReached(t, "fleet-return", own, possible, best), "50 processes open 3 times in all")
	own.OpeningsMeanwhile = 101
	require.False(t, goalsReached(t, "fleet-return", own, possible, best)[2])
}

func TestGoalsOfLowTraffic(t *testing.T) {
	own := sim.Figures{OfferedMeanwhile: 120, SentMeanwhile: 40, BadSentBeforeOpen: 10, UntilBack: 315 * time.Second}
	require.Equal(t, []bool{true, true, true}, goalsReached(t, "low-traffic-5s", own))
	require.Equal(t, []bool{true, true}, goalsReached(t, "low-traffic-1m", own))
	own = sim.Figures{OfferedMeanwhile: 120, SentMeanwhile: 41, BadSentBeforeOpen: 11, UntilBack: 316 * time.Second}
	require.Equal(t, []bool{false, false, false}, goalsReached(t, "low-traffic-5s", own))
	require.Equal(t, []bool{false, false}, goalsReached(t, "low-traffic-1m", own))
}

func TestGoalsThatForbidHarm(t *testing.T) {
	for name, most := range map[string]int{"good-day-5-often": 1, "good-day-85-lognormal": 1, "good-day-95-exponential": 1000} {
		require.Equal(t, []bool{true}, goalsReached(t, name, sim.Figures{Offered: 1e6, FalseRefusals: most}), name)
		require.Equal(t, []bool{false}, goalsReached(t, name, sim.Figures{Offered: 1e6, FalseRefusals: most + 1}), name)
	}
	require.Equal(t, []bool{true}, goalsReached(t, "hopeless-deadlines", sim.Figures{Offered: 10, Refused: 5, OfferedUnhurried: 5}))
	require.Equal(t, []bool{false}, goalsReached(t, "hopeless-deadlines", sim.Figures{OfferedUnhurried: 1e6, RefusedUnhurried: 1}))
	require.Equal(t, []bool{true}, goalsReached(t, "deadlines-in-a-hang", sim.Figures{Openings: 1}))
	require.Equal(t, []bool{false}, goalsReached(t, "deadlines-in-a-hang", sim.Figures{}))
	require.Equal(t, []bool{true}, goalsReached(t, "suspended", sim.Figures{}))
	require.Equal(t, []bool{false}, goalsReached(t, "suspended", sim.Figures{Openings: 1}))
}

func TestGoalsBesidePeersAndPolling(t *testing.T) {
	best := peer("best", sim.Figures{OfferedMeanwhile: 100, GoodMeanwhile: 50})
	for _, name := range []string{"flapping", "bad-host"} {
		require.Equal(t, []bool{true}, goalsReached(t, name, sim.Figures{OfferedMeanwhile: 100, GoodMeanwhile: 48}, best))
		require.Equal(t, []bool{false}, goalsReached(t, name, sim.Figures{OfferedMeanwhile: 100, GoodMeanwhile: 47}, best))
	}
	polling := row("none", sim.Figures{Wait: 5500 * time.Millisecond})
	require.Equal(t, []bool{true, true}, goalsReached(t, "herd-of-retriers", sim.Figures{Crowd: 0.05, Wait: 6500 * time.Millisecond}, polling))
	require.Equal(t, []bool{false, false}, goalsReached(t, "herd-of-retriers", sim.Figures{Crowd: 0.06, Wait: 6501 * time.Millisecond}, polling))
	require.Equal(t, []bool{false}, goalsReached(t, "herd-of-breakers", sim.Figures{Crowd: 0.06}))
}
