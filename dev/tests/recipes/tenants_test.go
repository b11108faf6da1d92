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

// allowedTo makes calls until the limit refuses one, and returns how many it has allowed.
func allowedTo(t *testing.T, tenants *recipes.Tenants, tenant string) (n int) {
	var service weirtest.Service
	for {
		err := tenants.Gate(tenant).Run(t.Context(), service.Call)
		if errors.Is(err, limiter.ErrLimited) {
			require.ErrorContains(t, err, "limiter tenants: no tokens left")
			require.NotContains(t, err.Error(), tenant)
			return n
		}
		require.NoError(t, err)
		n++
	}
}

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
		allowed := func(tenant string) int { return allowedTo(t, tenants, tenant) }
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
		err := tenants.Gate("acme").Run(t.Context(), service.Call)
		weirtest.WantRefused(t, err, breaker.ErrOpen)
		require.ErrorContains(t, err, "acme")
		require.NoError(t, tenants.Gate("umbrella").Run(t.Context(), service.Call))
	})
}

func TestSwitchingBetweenPlansRefillsNoBucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plan := 0
		tenants := recipes.NewTenants(limiter.PerSecond(2), []limiter.Tier{{Rate: limiter.PerSecond(10)}, {Rate: limiter.PerSecond(20)}},
			func(string) int { return plan })
		all := 0
		for range 2 * 100 { // for 10 s
			all += allowedTo(t, tenants, "acme")
			plan = 1 - plan
			time.Sleep(50 * time.Millisecond)
		}
		require.InDelta(t, 11*(10+20), all, 3, "the bursts and 10 s of both plans")
	})
}

func TestTheRatesOfPlansChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tenants := recipes.NewTenants(limiter.PerSecond(2), []limiter.Tier{{Rate: limiter.PerSecond(10)}}, func(string) int { return 0 })
		require.Equal(t, 10, allowedTo(t, tenants, "acme"))
		require.NoError(t, tenants.SetPlans(limiter.PerSecond(2), []limiter.Tier{{Rate: limiter.PerSecond(30)}}))
		require.Zero(t, allowedTo(t, tenants, "acme"), "a new rate is no new burst")
		time.Sleep(time.Second)
		require.Equal(t, 30, allowedTo(t, tenants, "acme"))
		require.Error(t, tenants.SetPlans(limiter.PerSecond(2), nil), "a plan is missing")
	})
}
