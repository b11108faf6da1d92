package limiter

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// These waits need no room for the key, because nothing is counted or no token is wanted.
func TestANaNKeyLeavesNoQueue(t *testing.T) {
	for _, shareNew := range []bool{false, true} {
		for _, c := range []GroupConfig[float64]{{Rate: Unlimited()}, {Rate: PerSecond(1)}, {Rate: PerSecond(1), Burst: Off}} {
			c.ShareNew = shareNew
			g := NewGroup(c)
			require.NoError(t, g.Get(math.NaN()).Wait(t.Context(), 0))
			require.Error(t, g.Get(math.NaN()).Wait(t.Context(), -1))
			err := g.Get(math.NaN()).Wait(t.Context(), 1)
			if c.Rate == Unlimited() {
				require.NoError(t, err)
			}
			require.Empty(t, g.queues.byKey)
		}
	}
}
