package tally_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/tally"
)

// The test compares the result of Pause with the times of all calls. It may lack up to a second at
// the beginning.
func TestAPauseIsATimeWithoutCalls(t *testing.T) {
	const second = time.Second
	r := rand.New(rand.NewPCG(1, 2))
	for _, width := range []time.Duration{10 * time.Millisecond, second, time.Minute} {
		c := tally.New(width, 10, slowDuration)
		var at, from, to time.Duration
		pauses := 0
		for i := range 2000 {
			step := time.Duration(r.ExpFloat64() * float64(second/2))
			now := at + step
			gotFrom, gotTo := c.Pause(now)
			switch {
			case i == 0:
				require.Equal(t, time.Duration(math.MinInt64), gotFrom)
				require.Equal(t, now, gotTo)
				gotFrom, gotTo, from, to = 0, 0, 0, 0
			case step >= 2*second, gotTo == now:
				require.GreaterOrEqual(t, step, second, "%v", width)
				from, to = at, now
				pauses++
			}
			if i > 0 && to > 0 {
				require.Equal(t, to, gotTo, "%v: call %d", width, i)
				require.GreaterOrEqual(t, gotFrom, from, "%v: call %d", width, i)
				require.LessOrEqual(t, gotFrom, from+second, "%v: call %d", width, i)
			}
			at = now
			c.Record(at, tally.Outcome(r.IntN(3)), 0)
		}
		require.Greater(t, pauses, 20)
	}
}

func TestATallyOverTheLastCallsKnowsNoPause(t *testing.T) {
	c := tally.NewLast(4, slowDuration)
	c.Record(time.Hour, tally.Success, 0)
	from, to := c.Pause(time.Hour)
	require.Equal(t, time.Duration(math.MinInt64), from)
	require.Equal(t, time.Hour, to)
}
