package scenario_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/dev/proving/internal/scenario"
	"github.com/weir-go/weir/dev/proving/internal/sim"
)

func TestScenariosHaveUniqueNamesAndSayWhatHappens(t *testing.T) {
	names, titles := map[string]bool{}, map[string]bool{}
	for _, s := range scenario.All() {
		require.Regexp(t, `^[a-z0-9]+(-[a-z0-9]+)*$`, s.Name)
		require.False(t, names[s.Name], s.Name)
		require.False(t, titles[s.Title], s.Title)
		names[s.Name], titles[s.Title] = true, true
		require.Greater(t, len(s.Text), 40, s.Name)
		require.NotEmpty(t, s.Shown, s.Name)
	}
}

func TestWorldsAreValidForManySeeds(t *testing.T) {
	for _, s := range scenario.All() {
		for seed := range uint64(100) {
			require.NoError(t, s.World(sim.NewDraw(seed)).Validate(), "%s, seed %d", s.Name, seed)
		}
	}
}

func TestWorldsFollowFromTheirSeed(t *testing.T) {
	for _, s := range scenario.All() {
		one, same, other := s.World(sim.NewDraw(1)), s.World(sim.NewDraw(1)), s.World(sim.NewDraw(2))
		require.Equal(t, one.Clients, same.Clients, s.Name)
		require.Equal(t, one.Faults, same.Faults, s.Name)
		require.Equal(t, one.Trouble, same.Trouble, s.Name)
		require.NotEqual(t, []any{one.Clients, one.For}, []any{other.Clients, other.For}, s.Name)
	}
}

// Guards that learn need time before the trouble.
func TestTroubleComesAfterTheWarmup(t *testing.T) {
	for _, s := range scenario.All() {
		for seed := range uint64(20) {
			w := s.World(sim.NewDraw(seed))
			if s.GoodDay {
				require.Zero(t, w.Trouble, s.Name)
				require.Empty(t, w.Faults, s.Name)
				continue
			}
			if w.Trouble != (sim.Span{}) {
				require.GreaterOrEqual(t, w.Trouble.From, w.Warmup, s.Name)
				require.Less(t, w.Trouble.To, w.For, s.Name)
			}
		}
	}
}

// A bound of one refusal in a million says nothing about fewer calls.
func TestGoodDaysHaveEnoughCalls(t *testing.T) {
	for _, s := range scenario.All() {
		if !s.GoodDay {
			continue
		}
		calls := 0.0
		for seed := uint64(101); seed <= 120; seed++ {
			w := s.World(sim.NewDraw(seed))
			calls += w.Clients[0].Rate * (w.For - w.Warmup).Seconds()
		}
		require.Greater(t, calls, 50_000.0, s.Name)
		if w := s.World(sim.NewDraw(1)); w.Clients[0].Rate > 10 {
			require.Greater(t, calls, 1e6, s.Name)
		}
	}
}

func TestSpreadIsMedianAndRange(t *testing.T) {
	wait := scenario.Column{Of: func(f sim.Figures) float64 {
		switch {
		case f.Wait == 0:
			return math.NaN()
		case f.Wait < 0:
			return math.Inf(1)
		}
		return f.Wait.Seconds()
	}}
	row := func(waits ...time.Duration) (r scenario.Row) {
		for _, w := range waits {
			r.Runs = append(r.Runs, sim.Figures{Wait: w * time.Second})
		}
		return r
	}
	require.Equal(t, scenario.Spread{Median: 2, Low: 1, High: 9}, row(9, 1, 2).Spread(wait))
	require.Equal(t, scenario.Spread{Median: 3, Low: 1, High: 9}, row(4, 9, 1, 2).Spread(wait))
	require.Equal(t, scenario.Spread{Median: 2, Low: 1, High: 9}, row(9, 0, 1, 2, 0, 0).Spread(wait), "no figure is left out")
	never := row(1, -1, -1, -1).Spread(wait)
	require.True(t, math.IsInf(never.Median, 1) && math.IsInf(never.High, 1), never)
	require.InDelta(t, 1, never.Low, 0)
	require.True(t, math.IsNaN(row().Spread(wait).Median))
	total := scenario.Column{Total: true, Of: func(f sim.Figures) float64 { return float64(f.Refused) / float64(f.Offered) }}
	all := scenario.Row{Runs: []sim.Figures{{Refused: 1, Offered: 1}, {Offered: 999}}}
	require.Equal(t, scenario.Spread{Median: 0.001, Low: 0.001, High: 0.001}, all.Spread(total), "calls count, and not runs")
}
