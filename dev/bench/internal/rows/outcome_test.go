package rows_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/dev/bench/internal/measure"
	"github.com/weir-go/weir/dev/bench/internal/rows"
)

// idleSide returns a side that allocates the given number of objects per operation, and does
// nothing else.
func idleSide(objects int) rows.Side {
	return rows.Side{Name: "idle", Does: "nothing", Make: func() measure.Loop {
		return func(n int) int {
			var keep *[64]byte
			for range n * objects {
				keep = new([64]byte)
			}
			runtime.KeepAlive(keep)
			return n
		}
	}}
}

var quickPlan = measure.Plan{Rounds: 2, Each: time.Microsecond, Allocs: 100}

func TestRunMeasuresEachModeAndAllocations(t *testing.T) {
	o, err := rows.Run(quickPlan, rows.Row{Name: "row", Weir: idleSide(0), Peer: idleSide(3)}, measure.Modes()...)
	require.NoError(t, err)
	require.Len(t, o.In, 3)
	require.Len(t, o.In[2].Ratio, 2)
	require.Equal(t, rows.Allocs{Weir: 0, Peer: 3}, o.Allocs)
}

func TestRunFloorMeasuresEachMode(t *testing.T) {
	for _, side := range rows.Floors() {
		floor, err := rows.RunFloor(quickPlan, side, measure.Serial, measure.Threads)
		require.NoError(t, err)
		require.Len(t, floor.Costs, 2)
		require.Positive(t, floor.Costs[1].Median, floor.Name)
	}
}

func TestMissedNamesEachBound(t *testing.T) {
	of := func(ratios ...float64) measure.Comparison { return measure.Comparison{Ratio: ratios} }
	o := rows.Outcome{
		Row:    rows.Row{Name: "row", Serial: 0.5, Threads: 0.6},
		Modes:  measure.Modes(),
		In:     []measure.Comparison{of(0.7, 0.7, 0.7), of(0.5, 0.5, 0.5), of(9, 9, 9)},
		Allocs: rows.Allocs{Weir: 1, Peer: 14},
	}
	require.Equal(t, []measure.Verdict{measure.Missed, measure.Reached, measure.NoBound}, []measure.Verdict{o.Verdict(0), o.Verdict(1), o.Verdict(2)})
	require.Equal(t, []string{"row, serial: ratio 0.7 ±0%, bound 0.5", "row: 1 allocations per call, bound 0"}, o.Missed())
	o.In[1] = measure.Comparison{Ratio: []float64{0.9, 0.9, 0.9}, Canary: []float64{0.5}}
	require.Contains(t, o.Missed(), "row, 2 threads: ratio 0.9 ±0%, bound 0.6")
	o.In[1] = of(0.5, 0.5, 0.5)

	o.Serial = 0
	require.Empty(t, o.Missed(), "a row without a bound misses nothing")
}

func TestDoubledNeedsARatioFarAboveTheBoundEachTime(t *testing.T) {
	busy := func(turns int) rows.Side {
		return rows.Side{Name: "busy", Make: func() measure.Loop {
			return func(n int) int {
				for began := time.Now(); time.Since(began) < time.Duration(n*turns)*time.Microsecond; {
				}
				return n
			}
		}}
	}
	plan := measure.Plan{Rounds: 5, Each: time.Millisecond}
	for turns, want := range map[int]bool{1: false, 4: true} {
		best, doubled, err := rows.Doubled(plan, rows.Row{Serial: 1, Weir: busy(turns), Peer: busy(1)})
		require.NoError(t, err)
		require.Equal(t, want, doubled, "%d times as long: ratio %.2f", turns, best)
	}
	_, _, err := rows.Doubled(quickPlan, rows.Row{Name: "row", Serial: 1, Weir: idleSide(0), Peer: rows.Side{Make: func() measure.Loop { return func(int) int { return 0 } }}})
	require.ErrorContains(t, err, "row: peer: ")
}

func TestARowWithUnexpectedResultsIsAnError(t *testing.T) {
	lazy := rows.Side{Name: "lazy", Make: func() measure.Loop { return func(int) int { return 0 } }}
	_, err := rows.Run(quickPlan, rows.Row{Name: "row", Weir: idleSide(0), Peer: lazy}, measure.Serial)
	require.EqualError(t, err, "row, serial: peer: 0 of 16 operations had the expected result")
}
