package recipes_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/dev/tests/recipes"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirtest"
)

func TestATenantThatChangesItsPlanKeepsItsBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var planOf sync.Map
		plans := []limiter.Tier{{Rate: limiter.PerSecond(10)}, {Rate: limiter.PerSecond(100)}}
		tenants := recipes.NewTenants(limiter.PerSecond(2), plans, func(tenant string) int {
			if plan, ok := planOf.Load(tenant); ok {
				return plan.(int)
			}
			return -1
		})
		var service weirtest.Service
		allowed := func(tenant string) (n int) {
			for {
				err := tenants.Gate(tenant).Run(t.Context(), service.Call)
				if errors.Is(err, limiter.ErrLimited) {
					return n
				}
				require.NoError(t, err)
				n++
			}
		}
		require.Equal(t, 2, allowed("acme"))
		planOf.Store("acme", 0)
		require.Equal(t, 10, allowed("acme"), "the bucket of another plan is full")
		require.Equal(t, 2, allowed("umbrella"))
		planOf.Store("acme", 1)
		require.Equal(t, 100, allowed("acme"))

		time.Sleep(time.Minute)
		down := func(context.Context) error { return weirtest.ErrDown }
		for range 20 {
			_ = tenants.Gate("acme").Run(t.Context(), down)
		}
		weirtest.WantRefused(t, tenants.Gate("acme").Run(t.Context(), service.Call), breaker.ErrOpen)
		planOf.Store("acme", 0)
		weirtest.WantRefused(t, tenants.Gate("acme").Run(t.Context(), service.Call), breaker.ErrOpen)
		require.NoError(t, tenants.Gate("umbrella").Run(t.Context(), service.Call))
	})
}
