package fleet_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/fleet/rediscell"
	"github.com/weir-go/weir/limiter"
)

// During a rolling deploy old nodes have one limit, and new nodes two. They count together.
func TestRollingDeployFromOneLimitToTwo(t *testing.T) {
	l := connect(t)
	second := fleet.TokenBucket{Rate: limiter.PerSecond(1000)}
	for name, first := range map[string]fleet.Limit{
		"fixed":   fleet.FixedWindow{Limit: 5, Window: 24 * time.Hour},
		"sliding": fleet.SlidingWindow{Limit: 5, Window: 24 * time.Hour},
		"log":     fleet.SlidingLog{Limit: 5, Window: 24 * time.Hour},
		"quick":   fleet.TokenBucket{Rate: limiter.Per(1, time.Hour), Burst: 5},
		"bucket":  fleet.TokenBucket{Rate: limiter.Per(7, 24*time.Hour), Burst: 5},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := newLimiter(l, "roll-"+name, first, errorOnOutage), newLimiters(l, "roll-"+name, errorOnOutage, first, second)
			allowed := 0
			for i := range 12 {
				r, err := []*fleet.Limiter{before, after}[i%2].Take(t.Context(), "user", 1)
				require.NoError(t, err)
				if r.OK {
					allowed++
				}
			}
			require.Equal(t, 5, allowed)
		})
	}
}

// A key of another kind of limit is refused, and keeps its value. Reset makes the key usable.
func TestAChangeOfKindIsRefused(t *testing.T) {
	l := connect(t)
	kinds := map[string]fleet.Limit{
		"fixed-window":   fleet.FixedWindow{Limit: 5, Window: time.Hour},
		"sliding-window": fleet.SlidingWindow{Limit: 5, Window: time.Hour},
		"sliding-log":    fleet.SlidingLog{Limit: 5, Window: time.Hour},
		"token-bucket":   fleet.TokenBucket{Rate: limiter.Per(1, time.Hour), Burst: 5},
		"cl.throttle":    rediscell.Limit(4, 5, time.Hour),
	}
	for from, old := range kinds {
		for to, limit := range kinds {
			if from == to {
				continue
			}
			t.Run(from+" to "+to, func(t *testing.T) {
				name := "kind-" + from + "-" + to
				before, after := newLimiter(l, name, old, errorOnOutage), newLimiter(l, name, limit, errorOnOutage)
				_, err := before.Take(t.Context(), "user", 2)
				require.NoError(t, err)
				_, err = after.Take(t.Context(), "user", 1)
				require.ErrorIs(t, err, fleet.ErrForeign)
				require.ErrorContains(t, err, "another kind of limit")
				r, err := before.Take(t.Context(), "user", 0)
				require.NoError(t, err)
				require.Equal(t, 3, r.Remaining, "nothing is lost")
				require.NoError(t, after.Reset(t.Context(), "user"))
				_, err = after.Take(t.Context(), "user", 1)
				require.NoError(t, err)
			})
		}
	}
}
