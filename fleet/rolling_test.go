package fleet_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/fleet/rediscell"
	"github.com/weir-go/weir/limiter"
)

// During a rolling deploy old and new nodes have one limit or two. At first all nodes are old, then
// old and new ones work at the same time, and in the end all are new. They count together.
func TestRollingDeployThatAddsOrRemovesALimit(t *testing.T) {
	l := connect(t)
	second := fleet.TokenBucket{Rate: limiter.PerSecond(1000)}
	for kind, first := range map[string]fleet.Limit{
		"fixed":   fleet.FixedWindow{Limit: 9, Window: 24 * time.Hour},
		"quota":   dailyQuota(9),
		"sliding": fleet.SlidingWindow{Limit: 9, Window: 24 * time.Hour},
		"log":     fleet.SlidingLog{Limit: 9, Window: 24 * time.Hour},
		"quick":   fleet.TokenBucket{Rate: limiter.Per(1, time.Hour), Burst: 9},
		"bucket":  fleet.TokenBucket{Rate: limiter.Per(7, 24*time.Hour), Burst: 9},
	} {
		one, two := fleet.Limits{first}, fleet.Limits{first, second}
		shared := fleet.Limits{first, fleet.Shared{Limit: second}}
		for change, c := range map[string]struct{ old, new fleet.Limits }{
			"one to two": {one, two}, "two to one": {two, one}, "one to shared": {one, shared}, "shared to one": {shared, one},
		} {
			t.Run(kind+", "+change, func(t *testing.T) {
				name := "roll-" + kind + "-" + change
				before, after := newLimiters(l, name, errorOnOutage, c.old...), newLimiters(l, name, errorOnOutage, c.new...)
				allowed := 0
				for _, b := range []*fleet.Limiter{before, before, before, after, before, after, before, after, after, after, after, before} {
					r, err := b.Take(t.Context(), "user", 1)
					require.NoError(t, err)
					if r.OK {
						allowed++
					}
				}
				require.Equal(t, 9, allowed)
			})
		}
	}
}

// Beside other limits, a limit of rediscell is a token bucket, and Redis stores it in another form.
// So its keys are refused, and lose nothing.
func TestAddingALimitToOneOfRediscell(t *testing.T) {
	l := connect(t)
	cell := rediscell.Limit(4, 5, time.Hour)
	one := newLimiter(l, "roll-cell", cell, errorOnOutage)
	two := newLimiters(l, "roll-cell", errorOnOutage, cell, fleet.FixedWindow{Limit: 10, Window: time.Hour})
	requireTake(t, taken, one.Take, "user", 2)
	_, err := two.Take(t.Context(), "user", 1)
	require.ErrorIs(t, err, fleet.ErrForeign)
	require.ErrorContains(t, err, "written by a limit of kind cl.throttle, and this one is a token-bucket")
	requireTake(t, taken, two.Take, "other", 2)
	_, err = one.Take(t.Context(), "other", 1)
	require.ErrorContains(t, err, "written by a limit of kind token-bucket, and this one is a cl.throttle")
	r, err := one.Take(t.Context(), "user", 0)
	require.NoError(t, err)
	require.Equal(t, 3, r.Remaining)
}

// A key of another kind of limit is refused, and keeps its value. Reset makes the key usable.
func TestAChangeOfKindIsRefused(t *testing.T) {
	l := connect(t)
	kinds := map[string]fleet.Limit{
		"fixed-window":   fleet.FixedWindow{Limit: 5, Window: time.Hour},
		"calendar-quota": dailyQuota(5),
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
				require.EqualError(t, err, "fleet: redis "+l.Name()+": the key was written by a limit of kind "+from+
					", and this one is a "+to+": give the limiter another name, or reset the key")
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
