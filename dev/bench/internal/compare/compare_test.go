package compare_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/dev/bench/internal/compare"
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
	o, err := compare.Run(quickPlan, rows.Row{Name: "row", Weir: idleSide(0), Peer: idleSide(3)}, measure.Modes()...)
	require.NoError(t, err)
	require.Len(t, o.In, 3)
	require.Len(t, o.In[2].Ratio, 2)
	require.Equal(t, compare.Allocs{Weir: 0, Peer: 3}, o.Allocs)
}

func TestRunFloorMeasuresEachMode(t *testing.T) {
	for _, side := range rows.Floors() {
		floor, err := compare.RunFloor(quickPlan, side, measure.Serial, measure.Threads)
		require.NoError(t, err)
		require.Len(t, floor.Costs, 2)
		require.Positive(t, floor.Costs[1].Median, floor.Name)
	}
}

func TestMissedNamesEachBound(t *testing.T) {
	of := func(ratios ...float64) measure.Comparison { return measure.Comparison{Ratio: ratios} }
	o := compare.Outcome{
		Row:    rows.Row{Name: "row", Serial: 0.5, Threads: 0.6},
		Modes:  measure.Modes(),
		In:     []measure.Comparison{of(0.7, 0.7, 0.7), of(0.5, 0.5, 0.5), of(9, 9, 9)},
		Allocs: compare.Allocs{Weir: 1, Peer: 14},
	}
	require.Equal(t, []measure.Verdict{measure.Missed, measure.Reached, measure.NoBound}, []measure.Verdict{o.Verdict(0), o.Verdict(1), o.Verdict(2)})
	require.Equal(t, []string{"row, serial: ratio 0.7 ±0%, bound 0.5", "row: 1 allocations per call, bound 0"}, o.Missed())
	o.In[1] = measure.Comparison{Ratio: []float64{0.9, 0.9, 0.9}, Canary: []float64{0.5}, Minimum: []float64{0.7}}
	require.Contains(t, o.Missed(), "row, 2 threads: ratio 0.9 ±0%, bound 0.6", "the minimum does not change the verdict")
	o.In[1] = of(0.5, 0.5, 0.5)

	o.Serial = 0
	require.Empty(t, o.Missed(), "a row without a bound misses nothing")
}

func TestARowWithUnexpectedResultsIsAnError(t *testing.T) {
	lazy := rows.Side{Name: "lazy", Make: func() measure.Loop { return func(int) int { return 0 } }}
	_, err := compare.Run(quickPlan, rows.Row{Name: "row", Weir: idleSide(0), Peer: lazy}, measure.Serial)
	require.EqualError(t, err, "row, serial: peer: 0 of 16 operations had the expected result")
}
