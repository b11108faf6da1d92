package inflight_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/inflight"
)

// slotsOf makes calls of 10 ms for 10 s. Each tenant has a number of callers, which call again as
// soon as a call has ended. It returns how many slots each tenant got.
func slotsOf(c inflight.Config, callers map[string]int) map[string]int {
	l := inflight.New(c)
	ctx, stop := context.WithCancel(context.Background())
	got := map[string]int{}
	var mu sync.Mutex
	var all sync.WaitGroup
	call := func(tenant string) {
		slot, err := l.Acquire(inflight.WithCaller(ctx, inflight.Caller{Tenant: tenant}))
		time.Sleep(10 * ms)
		if err != nil {
			return
		}
		mu.Lock()
		got[tenant]++
		mu.Unlock()
		slot.Done(ctx, nil)
	}
	for tenant, n := range callers {
		for range n {
			all.Go(func() {
				for ctx.Err() == nil {
					call(tenant)
				}
			})
		}
	}
	time.Sleep(10 * time.Second)
	stop()
	all.Wait()
	return got
}

// A tenant with about as many callers as slots has no waiter after each of its turns.
func TestATenantGetsItsPartHoweverFewCallersItHas(t *testing.T) {
	weight := func(tenant string) float64 { return map[string]float64{"paid": 10, "free": 1}[tenant] }
	for _, limit := range []int{1, 4} {
		for _, q := range []inflight.Queue{{TenantWeight: weight}, {TenantWeight: weight, Target: 20 * ms}} {
			for _, free := range []int{1, 2, 3, 20} {
				t.Run(fmt.Sprintf("limit %d, Target %v, %d callers", limit, q.Target, free), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						got := slotsOf(inflight.Config{Limit: limit, Queue: q}, map[string]int{"paid": 50, "free": free})
						require.InEpsilon(t, 10, float64(got["paid"])/float64(got["free"]), 0.2, "%v", got)
					})
				})
			}
		}
	}
}

// Nor does a tenant with very many callers get less than its part beside tenants with one each.
func TestATenantWithManyCallersGetsItsPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		callers := map[string]int{"many": 500}
		for i := range 10 {
			callers[fmt.Sprint("one ", i)] = 1
		}
		got := slotsOf(inflight.Config{Limit: 4, MaxWaiters: 100}, callers)
		for tenant, n := range got {
			require.InEpsilon(t, 4000/11, n, 0.1, tenant)
		}
	})
}
