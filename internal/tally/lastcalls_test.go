package tally_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/tally"
)

// TestLastCallsEqualAPlainList records random calls in a window over the last calls and in a list,
// and compares the window, also from an earlier reading of the totals on.
func TestLastCallsEqualAPlainList(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 300 {
		size := 1 + r.IntN(8)
		c := tally.NewLast(size, slowDuration)
		var list []tally.Counts
		var since tally.Counts
		from := 0
		for range 40 {
			if r.IntN(10) == 0 {
				since, from = c.Totals(), len(list)
			}
			o, took := tally.Outcome(r.IntN(2)), slowDuration
			one := tally.Counts{Successes: int64(1 - o), Failures: int64(o)}
			if r.IntN(3) == 0 {
				took++
				one.Slow, one.SlowFailures = 1, int64(o)
			}
			c.Record(0, o, took)
			list = append(list, one)

			var want tally.Counts
			for _, one := range list[max(from, len(list)-size):] {
				want = addCounts(want, one)
			}
			calls, slows := c.Rates(0, &since)
			require.Equal(t, callsOf(want), calls, "the last %d of %d calls, from %d on", size, len(list), from)
			require.Equal(t, tally.Pair{Calls: want.Slow, Failures: want.SlowFailures}, slows)
			got := c.Window(0, &since)
			got.ConsecutiveFailures = 0
			require.Equal(t, want, got)
		}
	}
}
