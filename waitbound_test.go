package weir_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/limiter"
)

// Ten calls hang in all slots, and one caller comes per second and waits. When the slots fall free,
// or the bound is removed, no more calls begin at one moment than the bucket has tokens.
func TestCallsThatWaitedForSlotsBeginAtTheRate(t *testing.T) {
	config := weir.Config{Rate: limiter.PerSecond(1), Burst: 1, MaxConcurrent: 10, MaxWait: time.Minute}
	for name, after := range map[string]func(g *weir.Gate, release func()){
		"the slots fall free": func(_ *weir.Gate, release func()) { release() },
		"the bound is removed": func(g *weir.Gate, _ func()) {
			c := config
			c.MaxConcurrent = 0
			require.NoError(t, g.Reconfigure(c))
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			g := weir.New("g", config)
			hang := make(chan struct{})
			release := sync.OnceFunc(func() { close(hang) })
			var mu sync.Mutex
			began := map[time.Duration]int{}
			start := time.Now()
			var all sync.WaitGroup
			for range 40 {
				all.Go(func() {
					_ = g.Run(bg(), func(context.Context) error {
						mu.Lock()
						began[time.Since(start)]++
						mu.Unlock()
						<-hang
						return nil
					})
				})
				time.Sleep(time.Second)
			}
			after(g, release)
			synctest.Wait()
			release()
			all.Wait()
			require.Len(t, began, 40, name)
			for at, n := range began {
				require.Equal(t, 1, n, "%s: calls that began at %s", name, at)
			}
		})
	}
}

// Calls wait for a slot, get one during a hold and give it back, and are made without one after
// Reconfigure has removed the bound. Their ends release no slot of the bound that is added again.
func TestAReleasedSlotIsNotReleasedAgain(t *testing.T) {
	bounded := weir.Config{MaxConcurrent: 1, MaxWait: 30 * time.Second}
	for _, grouped := range []bool{false, true} {
		t.Run(fmt.Sprint("group=", grouped), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := weir.New("g", bounded)
				reconfigure := g.Reconfigure
				if grouped {
					group := weir.NewGroup[string]("g", weir.GroupConfig{Gate: bounded})
					g, reconfigure = group.Get("k"), group.Reconfigure
				}
				var all sync.WaitGroup
				call := func(d time.Duration) {
					all.Go(func() {
						require.NoError(t, g.Run(bg(), func(context.Context) error { time.Sleep(d); return nil }))
					})
					synctest.Wait()
				}
				call(2 * time.Second)
				for range 20 {
					call(10 * time.Second)
				}
				time.Sleep(time.Second)
				g.Hold(2 * time.Second)
				time.Sleep(4 * time.Second)
				require.NoError(t, reconfigure(weir.Config{}))
				all.Wait()
				require.NoError(t, reconfigure(weir.Config{MaxConcurrent: 1}))
				require.Zero(t, callsInFlight(g))
				require.NoError(t, g.Run(bg(), succeed))
			})
		})
	}
}

// Calls that wait for a slot give up when their tokens have left the window. What they give back
// is not that of others.
func TestACallThatGivesUpLateGivesNothingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := inflight.New(inflight.Config{Limit: 10})
		log := limiter.NewSlidingLog(limiter.WindowConfig{Limit: 5, Window: 100 * time.Millisecond})
		g := weir.Join("g", weir.Parts{Breaker: breaker.New("b", breaker.Config{}), Limiter: log, InFlight: slots, MaxWait: time.Second})
		busy := make([]inflight.Slot, 10)
		for i := range busy {
			busy[i], _ = slots.TryAcquire()
		}
		var mu sync.Mutex
		began := 0
		start := func(ctx context.Context) {
			for range 5 {
				go func() {
					_ = g.Run(ctx, func(context.Context) error {
						mu.Lock()
						defer mu.Unlock()
						began++
						return nil
					})
				}()
			}
			synctest.Wait()
		}
		ctx, cancel := context.WithCancel(bg())
		start(ctx)
		time.Sleep(140 * time.Millisecond)
		start(bg())
		time.Sleep(10 * time.Millisecond)
		cancel()
		start(bg())
		for i := range busy {
			busy[i].Done(bg(), nil)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		made := func() int {
			mu.Lock()
			defer mu.Unlock()
			return began
		}
		require.Equal(t, 5, made(), "calls within a millisecond")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Equal(t, 10, made())
	})
}

// A key without room is told so, whatever refuses it.
func TestARefusalOfAKeyWithoutRoomNamesMaxKeys(t *testing.T) {
	g := weir.NewGroup[int]("tenants", weir.GroupConfig{MaxKeys: 1, Gate: weir.Config{Rate: limiter.Per(1, time.Hour), Burst: 1, MaxConcurrent: 1}})
	require.NoError(t, g.Get(1).Run(bg(), succeed))
	permit, err := g.Get(2).Allow(bg())
	require.NoError(t, err)
	require.ErrorContains(t, g.Get(3).Run(bg(), succeed), "limiter tenants: no tokens left (limit 1), which all keys without room share: MaxKeys is 1, retry in ")
	permit.Record(breaker.Success)

	keys := limiter.NewGroup(limiter.GroupConfig[int]{Rate: limiter.Per(1, time.Hour), Burst: 1, MaxKeys: 1})
	require.True(t, keys.Get(1).Take(1).OK)
	joined := weir.Join("joined", weir.Parts{Breaker: breaker.New("b", breaker.Config{}), Limiter: keys.Get(2)})
	require.ErrorContains(t, joined.Run(bg(), succeed), "limiter joined: no room for the key: MaxKeys is 1 (limit 1), retry in ")

	g = weir.NewGroup[int]("tenants", weir.GroupConfig{MaxKeys: 1, Gate: weir.Config{MaxConcurrent: 1}})
	require.NoError(t, g.Get(1).Run(bg(), succeed))
	permit, err = g.Get(2).Allow(bg())
	require.NoError(t, err)
	require.ErrorContains(t, g.Get(3).Run(bg(), succeed), `"tenants, of all keys without room: MaxKeys is 1" is full`)
	permit.Record(breaker.Success)
}

func TestARefusalAfterAWaitOfAKeyWithoutRoomNamesMaxKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := weir.Config{Rate: limiter.Per(1, time.Hour), Burst: 1, MaxWait: time.Second}
		g := weir.NewGroup[int]("tenants", weir.GroupConfig{MaxKeys: 1, Gate: gate})
		require.NoError(t, g.Get(1).Run(bg(), succeed))
		require.NoError(t, g.Get(2).Run(bg(), succeed))
		require.EqualError(t, g.Get(3).Run(bg(), succeed),
			"limiter tenants: wait longer than wanted: MaxWait is 1s (limit 1), which all keys without room share: MaxKeys is 1, retry in 1h0m0s")

		g = weir.NewGroup[int]("tenants", weir.GroupConfig{MaxKeys: 1, Gate: weir.Config{MaxConcurrent: 1, MaxWait: time.Second}})
		require.NoError(t, g.Get(1).Run(bg(), succeed))
		permit, err := g.Get(2).Allow(bg())
		require.NoError(t, err)
		require.ErrorContains(t, g.Get(3).Run(bg(), succeed),
			`"tenants, of all keys without room: MaxKeys is 1" had no slot within 1s (limit 1, MaxWait 1s)`)
		permit.Record(breaker.Success)
	})
}
