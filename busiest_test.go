package weir_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
)

func TestBusiestCountsTheRefusalsOfAllLimitsOfAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.NewGroup[string]("hosts", weir.GroupConfig{ShowKeys: true, Gate: weir.Config{
			Rate: limiter.Per(1, time.Hour), Burst: 2, MaxConcurrent: 1, Breaker: breaker.Config{MinCalls: 1},
		}})
		refused := func(key string, by error) {
			_, err := g.Get(key).Allow(t.Context())
			require.ErrorIs(t, err, by)
		}
		permit, err := g.Get("a").Allow(t.Context())
		require.NoError(t, err)
		refused("a", weir.ErrRefused) // no slot
		permit.Done(t.Context(), nil)
		require.NoError(t, g.Get("a").Run(t.Context(), func(context.Context) error { return nil }))
		refused("a", limiter.ErrLimited) // no token
		g.Get("b").Hold(time.Minute)
		refused("b", limiter.ErrLimited)
		require.Error(t, g.Get("c").Run(t.Context(), func(context.Context) error { return errors.New("down") }))
		refused("c", breaker.ErrOpen) // is not counted

		require.Equal(t, []limiter.BusyKey{
			{Limiter: "hosts", Key: "a", AtLeast: 2, AtMost: 2}, {Limiter: "hosts", Key: "b", AtLeast: 1, AtMost: 1},
		}, g.Busiest(9))
		require.Len(t, g.Busiest(1), 1)
		require.Equal(t, int64(3), g.Admissions().Refused)
	})
}

func TestBusiestCountsWaitsThatAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.NewGroup[int]("tenants", weir.GroupConfig{Gate: weir.Config{Rate: limiter.Per(1, time.Hour), MaxWait: time.Second}})
		for range 3 {
			_ = g.Get(7).Run(t.Context(), func(context.Context) error { return nil })
		}
		keys := g.Busiest(9)
		require.Len(t, keys, 1)
		require.Regexp(t, "^#[0-9a-f]{12}$", keys[0].Key)
		require.Equal(t, int64(2), keys[0].AtLeast)
	})
}
