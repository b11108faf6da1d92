package fleet_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/fleet/internal/redistest"
	"github.com/weir-go/weir/limiter"
)

// Redis grants the whole limit and becomes unavailable. Then this node, with a share of 1, grants a
// full bucket and the tokens that arrive in the span. The sum is at most the bound stated in
// Config.Share, and not much less.
func TestBoundOfFailLocal(t *testing.T) {
	t.Parallel()
	const limit, span = 60, 2 * time.Second
	for name, test := range map[string]struct {
		kind fleet.Limit
		most int // in any span: what the limit itself allows, and 2·limit
	}{
		"log":     {fleet.SlidingLog{Limit: limit, Window: span}, 3 * limit},
		"sliding": {fleet.SlidingWindow{Limit: limit, Window: span}, 3 * limit},
		"fixed":   {fleet.FixedWindow{Limit: limit, Window: span}, 4 * limit},
		"bucket":  {fleet.TokenBucket{Rate: limiter.Per(limit, span), Burst: limit}, 4 * limit},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			l := connectTo(t, newClient(t, s), fleet.LinkConfig{Timeout: 50 * ms})
			b := newLimiter(l, "bound", test.kind, fleet.Config{OnOutage: fleet.FailLocal, Share: 1, MaxDenied: limiter.Off})
			var allowed []time.Time
			began := time.Now()
			tick := time.NewTicker(200 * time.Microsecond)
			defer tick.Stop()
			for gone := false; time.Since(began) < 2*span; <-tick.C {
				if !gone && len(allowed) >= limit {
					gone = true
					s.Kill()
				}
				r, err := b.Take(t.Context(), "user", 1)
				require.NoError(t, err)
				if r.OK {
					allowed = append(allowed, time.Now())
				}
			}
			most := 0
			for i, first := 0, 0; i < len(allowed); i++ {
				for allowed[i].Sub(allowed[first]) >= span {
					first++
				}
				most = max(most, i-first+1)
			}
			t.Logf("%d allowed within a span, of a limit of %d", most, limit)
			require.LessOrEqual(t, most, test.most)
			require.Greater(t, most, 2*limit-limit/4, "the documented bound is not reached")
		})
	}
}
