package inflight_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/limiter"
)

// acquireAll takes slots until none is left.
func acquireAll(l *inflight.Limiter) (slots []*inflight.Slot) {
	for {
		slot, ok := tryAcquire(l)
		if !ok {
			return slots
		}
		slots = append(slots, &slot)
	}
}

func releaseAll(slots []*inflight.Slot) {
	for _, s := range slots {
		s.Done(context.Background(), nil)
	}
}

func TestReconfigureChangesTheKind(t *testing.T) {
	fixed := inflight.Config{Limit: 100}
	adaptive := inflight.Config{Limit: 100, Adaptive: true}
	for name, c := range map[string]struct{ before, after inflight.Config }{
		"fixed to adaptive": {fixed, adaptive},
		"adaptive to fixed": {adaptive, fixed},
		"adaptive":          {adaptive, adaptive},
		"fixed":             {fixed, fixed},
	} {
		t.Run(name, func(t *testing.T) {
			l := inflight.New(c.before)
			slots := acquireAll(l)
			require.Len(t, slots, 100)
			require.NoError(t, l.Reconfigure(c.after))
			require.Empty(t, acquireAll(l), "calls in flight count")
			releaseAll(slots[:30])
			require.Len(t, acquireAll(l), 30)
			require.Equal(t, 100, l.InFlight())
		})
	}
}

// An adaptive limit that begins below the calls in flight would refuse calls of a service that is
// well.
func TestALimitThatBecomesAdaptiveBeginsWithTheCallsInFlight(t *testing.T) {
	l := inflight.New(inflight.Config{Limit: 1000})
	for range 600 {
		_, ok := tryAcquire(l)
		require.True(t, ok)
	}
	require.NoError(t, l.Reconfigure(inflight.Config{Adaptive: true}))
	require.Equal(t, 600, l.Limit())
	_, ok := tryAcquire(l)
	require.True(t, ok)
}

// A call that was timed ends after the limit has become fixed, and does not change it.
func TestAFixedLimitIsNotChangedByCallsOfTheAdaptiveOne(t *testing.T) {
	l := inflight.New(inflight.Config{Adaptive: true, Limit: 1000})
	slots := make([]*inflight.Slot, 0, 200)
	for range 200 {
		slot, ok := tryAcquire(l)
		require.True(t, ok)
		slots = append(slots, &slot)
	}
	require.NoError(t, l.Reconfigure(inflight.Config{Limit: 7}))
	releaseAll(slots)
	require.Equal(t, 7, l.Limit())
	require.Len(t, acquireAll(l), 7)
}

// startWaiters makes callers of two tenants wait for a slot, and returns how long each waited. A
// negative time is that of a call that got no slot.
func startWaiters(t *testing.T, l *inflight.Limiter, n int) (wait func() []time.Duration) {
	t.Helper()
	took := make([]time.Duration, n)
	var all sync.WaitGroup
	start := time.Now()
	for i := range n {
		all.Go(func() {
			slot, err := l.Acquire(inflight.WithCaller(t.Context(), inflight.Caller{Tenant: string(rune('a' + i%2))}))
			took[i] = time.Since(start)
			if err != nil {
				took[i] = -took[i]
			}
			slot.Done(t.Context(), nil)
		})
		synctest.Wait()
	}
	return func() []time.Duration {
		all.Wait()
		return took
	}
}

// Two callers wait. The config changes after 10 ms, and all slots are released after a second.
func TestWaitersAdoptTheNewConfig(t *testing.T) {
	one := inflight.Config{Limit: 1, Name: "l"}
	for name, c := range map[string]struct {
		before, after inflight.Config
		took          time.Duration
		stats         limiter.Stats
	}{
		"the same":         {one, one, time.Second, limiter.Stats{Waited: 2}},
		"a higher limit":   {one, inflight.Config{Limit: 3, Name: "l"}, 10 * ms, limiter.Stats{Waited: 2}},
		"adaptive":         {one, inflight.Config{Adaptive: true, Name: "l"}, 10 * ms, limiter.Stats{Waited: 2}},
		"fewer MaxWaiters": {one, inflight.Config{Limit: 1, MaxWaiters: 1, Name: "l"}, time.Second, limiter.Stats{Waited: 2}},
		"Shadow":           {one, inflight.Config{Limit: 1, Name: "l", Shadow: true}, 10 * ms, limiter.Stats{Shadowed: 2}},
		"a Target":         {one, inflight.Config{Limit: 1, Name: "l", Queue: inflight.Queue{Target: 5 * ms}}, -100 * ms, limiter.Stats{Refused: 2}},
		"a longer Target": {
			inflight.Config{Limit: 1, Name: "l", Queue: inflight.Queue{Target: 5 * ms}},
			inflight.Config{Limit: 1, Name: "l", Queue: inflight.Queue{Target: 500 * ms}},
			-100 * ms,
			limiter.Stats{Refused: 2},
		},
		"a shorter Interval": {
			inflight.Config{Limit: 1, Name: "l", Queue: inflight.Queue{Target: 5 * ms}},
			inflight.Config{Limit: 1, Name: "l", Queue: inflight.Queue{Target: 5 * ms, Interval: 7 * ms}},
			-10 * ms,
			limiter.Stats{Refused: 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := inflight.New(c.before)
				slots := acquireAll(l)
				refused := l.Stats().Refused
				wait := startWaiters(t, l, 2)
				time.Sleep(10 * ms)
				require.NoError(t, l.Reconfigure(c.after))
				require.Equal(t, c.after.Queue.Target, l.Queue().Target)
				time.AfterFunc(990*ms, func() { releaseAll(slots) })
				require.Equal(t, []time.Duration{c.took, c.took}, wait())
				stats := l.Stats()
				require.Equal(t, limiter.Stats{Waited: c.stats.Waited, Refused: c.stats.Refused, Shadowed: c.stats.Shadowed},
					limiter.Stats{Waited: stats.Waited, Refused: stats.Refused - refused, Shadowed: stats.Shadowed})
				time.Sleep(time.Second)
				require.Zero(t, l.InFlight())
			})
		})
	}
}

func TestReconfigureChangesTheWeightsOfTenantsThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := inflight.New(inflight.Config{Limit: 1})
		slot, _ := tryAcquire(l)
		var order []byte
		var all sync.WaitGroup
		for i := range 8 {
			tenant := "a"
			if i >= 4 {
				tenant = "b"
			}
			all.Go(func() {
				slot, err := l.Acquire(inflight.WithCaller(t.Context(), inflight.Caller{Tenant: tenant}))
				require.NoError(t, err)
				order = append(order, tenant...)
				slot.Done(t.Context(), nil)
			})
			synctest.Wait()
		}
		require.NoError(t, l.Reconfigure(inflight.Config{Limit: 1, Queue: inflight.Queue{TenantWeight: func(name string) float64 {
			return map[string]float64{"a": 1, "b": 3}[name]
		}}}))
		slot.Done(t.Context(), nil)
		all.Wait()
		require.Len(t, order, 8)
		b := 0
		for _, c := range order[:5] {
			if c == 'b' {
				b++
			}
		}
		require.GreaterOrEqual(t, b, 3, "%s", order)
	})
}

func TestReconfigureRefuses(t *testing.T) {
	c := inflight.Config{Limit: 3, Name: "l"}
	l := inflight.New(c)
	require.EqualError(t, l.Reconfigure(inflight.Config{Limit: 5, Name: "m"}), `inflight: Name is "m", must be "l" as before`)
	bad := inflight.Config{Limit: -5, Name: "l"}
	require.EqualError(t, l.Reconfigure(bad), bad.Validate().Error())
	require.Equal(t, 3, l.Limit())
	require.NoError(t, l.Reconfigure(c))
}
