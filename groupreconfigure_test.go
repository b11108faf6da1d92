package weir_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/limiter"
)

// gatesOfEveryKind returns a group, and four of its gates that were made before a change: for a key
// in the group, for an evicted key, for a forgotten key, and for a key without room.
func gatesOfEveryKind(t *testing.T, c weir.Config) (*weir.Group[string], map[string]*weir.Gate) {
	c.Breaker.ConsecutiveFailures = 1
	g := hosts(weir.GroupConfig{Gate: c, MaxKeys: 2, MaxSeries: breaker.Off})
	gates := map[string]*weir.Gate{"evicted": g.Get("evicted"), "forgotten": g.Get("forgotten")}
	require.True(t, g.Forget("forgotten"))
	gates["present"] = g.Get("present")
	_ = gates["present"].Run(bg(), fail) // an open breaker is not evicted
	_ = g.Get("other").Run(bg(), fail)
	gates["without room"] = g.Get("without room")
	require.Equal(t, 2, g.Len())
	time.Sleep(time.Hour)
	for _, key := range []string{"present", "other"} { // half-open, recovering and closed again
		for range 40 {
			_ = g.Get(key).Run(bg(), succeed)
			time.Sleep(time.Minute)
		}
		require.Equal(t, breaker.Closed, g.Get(key).Breaker().State())
	}
	return g, gates
}

func TestAGroupGetsAndLosesARate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limited := weir.Config{Rate: limiter.Per(1, time.Hour), Burst: 2}
		g, gates := gatesOfEveryKind(t, weir.Config{})
		requireAllowed := func(n int) {
			t.Helper()
			gates["new"] = g.Get("new")
			for name, gate := range gates {
				for range n {
					require.NoError(t, gate.Run(bg(), succeed), name)
				}
			}
		}
		requireAllowed(5)
		require.NoError(t, g.Reconfigure(limited))
		for name, gate := range gates {
			if name == "without room" || name == "new" {
				continue // they share a bucket with others
			}
			require.NoError(t, gate.Run(bg(), succeed), name)
			require.NoError(t, gate.Run(bg(), succeed), name)
			require.ErrorIs(t, gate.Run(bg(), succeed), limiter.ErrLimited, name)
		}
		for range 2 {
			_ = gates["without room"].Run(bg(), succeed)
		}
		require.ErrorIs(t, gates["without room"].Run(bg(), succeed), limiter.ErrLimited)

		require.NoError(t, g.Reconfigure(weir.Config{}))
		requireAllowed(5)
		require.NoError(t, g.Reconfigure(limited))
		require.ErrorIs(t, gates["present"].Run(bg(), succeed), limiter.ErrLimited, "the bucket was kept")
		require.ErrorIs(t, g.Get("present").Run(bg(), succeed), limiter.ErrLimited)
	})
}

func TestAGroupGetsAndLosesABound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, gates := gatesOfEveryKind(t, weir.Config{})
		for name, gate := range gates {
			require.NoError(t, gate.Run(bg(), func(context.Context) error {
				// before there is a bound
				require.NoError(t, g.Reconfigure(weir.Config{MaxConcurrent: 1}))
				return gate.Run(bg(), func(context.Context) error {
					require.ErrorIs(t, gate.Run(bg(), succeed), inflight.ErrFull, name)
					require.NoError(t, g.Reconfigure(weir.Config{Adaptive: true, MaxConcurrent: 1}))
					require.ErrorIs(t, gate.Run(bg(), succeed), inflight.ErrFull, name)
					require.NoError(t, g.Reconfigure(weir.Config{}))
					require.NoError(t, gate.Run(bg(), succeed), name)
					require.NoError(t, g.Reconfigure(weir.Config{MaxConcurrent: 1}))
					if name == "present" {
						require.ErrorIs(t, gate.Run(bg(), succeed), inflight.ErrFull, "the slot in use counts again")
					}
					require.NoError(t, g.Reconfigure(weir.Config{}))
					return nil
				})
			}), name)
			require.NoError(t, g.Reconfigure(weir.Config{MaxConcurrent: 1}))
			require.Zero(t, callsInFlight(g), name)
			require.NoError(t, g.Reconfigure(weir.Config{}))
		}
	})
}

// A waiting call follows the config that was in effect when the call came, until Reconfigure
// replaces that config.
func TestCallsThatWaitAtAKeyFollowReconfigure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := weir.Config{Rate: limiter.Per(1, time.Hour), Burst: 1, MaxWait: 3 * time.Hour}
		shorter := slow
		shorter.MaxWait = time.Minute
		for _, c := range []struct {
			to   weir.Config
			want error
			took time.Duration
		}{
			{weir.Config{}, nil, time.Second}, // no rate: at once
			// a faster one
			{weir.Config{Rate: limiter.Per(1, 30*time.Minute), Burst: 1, MaxWait: 3 * time.Hour}, nil, 30 * time.Minute},
			{shorter, weir.ErrRefused, time.Minute},
		} {
			g := hosts(weir.GroupConfig{Gate: slow})
			gate := g.Get("a")
			require.NoError(t, gate.Run(bg(), succeed))
			began := time.Now()
			time.AfterFunc(time.Second, func() { require.NoError(t, g.Reconfigure(c.to)) })
			require.ErrorIs(t, gate.Run(bg(), succeed), c.want)
			require.InDelta(t, c.took, time.Since(began), float64(time.Second), "%+v", c.to)
			require.Zero(t, g.Admissions().Waiting)
		}
	})
}
