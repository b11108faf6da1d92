package report_test

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/dev/proving/internal/guards"
	"github.com/weir-go/weir/dev/proving/internal/report"
	"github.com/weir-go/weir/dev/proving/internal/scenario"
	"github.com/weir-go/weir/dev/proving/internal/sim"
)

func TestRecordIsReadAsItWasWritten(t *testing.T) {
	rec := report.Record{
		Harmless: []string{"none", "gobreaker, tuned"},
		Reached: []report.Kept{
			{"outage", "weir", "calls sent ≤ 1.05 × the best peer's", scenario.Spread{Median: 23.25, Low: 20, High: math.Inf(1)}},
		},
	}
	var b bytes.Buffer
	require.NoError(t, rec.Write(&b))
	read, err := report.ReadRecord(&b)
	require.NoError(t, err)
	require.Equal(t, rec, read)
}

func TestRecordsThatAreDamagedAreErrors(t *testing.T) {
	for _, text := range []string{"hello", "", "reached\tone\ttwo", "reached\ta\tb\tc\t1\t2\tx", "harmless"} {
		_, err := report.ReadRecord(strings.NewReader("# head\n" + text + "\n"))
		require.ErrorContains(t, err, "line 2", text)
	}
}

func TestRecordHasTheGoalsThatWereReached(t *testing.T) {
	rec := report.NewRecord(run(matrix(sim.None(), weir(), maker("strict", true, refusingGuard{}))))
	require.Equal(t, []string{"none", "weir"}, rec.Harmless)
	var goals []string
	for _, k := range rec.Reached {
		goals = append(goals, k.Scenario+": "+k.Guard+": "+k.Goal)
	}
	require.Equal(t, []string{"outage: weir: half is good", "well: weir: nearly all is good"}, goals)
}

func TestABrokenGuardLosesItsGoals(t *testing.T) {
	rec := report.NewRecord(run(matrix(sim.None(), weir())))
	require.Empty(t, rec.Lost(run(matrix(sim.None(), weir()))))
	for _, broken := range []sim.Guard{refusingGuard{}, panicker{}} {
		lost := rec.Lost(run(matrix(sim.None(), maker(guards.Weir, false, broken))))
		require.Len(t, lost, 2)
		require.Contains(t, lost[0], "outage: weir: half is good: ")
		require.Contains(t, lost[1], "well: weir: nearly all is good: ")
	}
	lost := rec.Lost(run(matrix(sim.None())))
	require.Len(t, lost, 2, "a row that is gone is no goal reached")
}

func TestAGoalIsLostBeyondTheRangeOverSeeds(t *testing.T) {
	results := run(matrix(sim.None(), weir()))
	v := results[0].Verdicts()[1] // all is good
	require.False(t, v.Reached)
	missedBy := 100 - v.Figure.Median
	kept := func(spread float64) report.Record {
		return report.Record{Reached: []report.Kept{{"outage", "weir", "all is good", scenario.Spread{Median: 100, Low: 100 - spread, High: 100}}}}
	}
	require.Empty(t, kept(missedBy+0.01).Lost(results))
	require.Len(t, kept(missedBy-0.01).Lost(results), 1)
	renamed := report.Record{Reached: []report.Kept{{"outage", "weir", "renamed", scenario.Spread{}}}}
	require.Contains(t, renamed.Lost(results)[0], "run make proving")
	elsewhere := report.Record{Reached: []report.Kept{{"not run", "weir", "any", scenario.Spread{}}}}
	require.Empty(t, elsewhere.Lost(results))
}
