package fleet_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet"
)

// During the rollout of a new config, nodes with narrow and with wide buckets use the same key in
// turn.
func TestBucketsOfAnotherWidthDoNotAccumulate(t *testing.T) {
	t.Parallel()
	l, direct := connect(t), newClient(t, sharedServer())
	narrow := newLimiter(l, "parts", fleet.SlidingWindow{Limit: 1_000_000, Window: 10 * time.Second, Buckets: 1000}, errorOnOutage)
	wide := newLimiter(l, "parts", fleet.SlidingWindow{Limit: 1_000_000, Window: 10 * time.Minute}, errorOnOutage)
	const steps, turn = 2500, 500
	for i := range steps {
		b := narrow
		if i%turn == turn-1 {
			b = wide
		}
		_, err := b.TakeAt(t.Context(), testStart.Add(time.Duration(i)*10*ms), "user", 1)
		require.NoError(t, err, "step %d", i)
	}
	require.Less(t, direct.StrLen(t.Context(), wide.StateKeys("user")[0]).Val(), int64(100), "one part")
	r, err := wide.TakeAt(t.Context(), testStart.Add(steps*10*ms), "user", 0)
	require.NoError(t, err)
	require.Equal(t, 1_000_000-steps, r.Remaining, "all tokens still count")
}
