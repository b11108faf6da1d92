package limiter_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat/view"
)

// groupView is what package admin sees of a group.
type groupView interface {
	view.Holder
	view.Resetter
	view.Keyed
	view.Group
	view.Tunable
}

func viewOf[K comparable](g *limiter.Group[K]) (v groupView) {
	for one := range g.Views {
		v = one.(groupView)
	}
	return v
}

// A hold of all keys decides as a hold of each key does, also after its end and after changes of
// the rate.
func TestHoldOfAllKeysIsThatOfEachKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(1, 2))
		const keys = 6
		config := limiter.GroupConfig[int]{
			Rate: limiter.PerSecond(3), Burst: 4, MaxKeys: 100, Tiers: []limiter.Tier{{Rate: limiter.PerMinute(7), Burst: 2}},
			TierOf: func(key int) int { return key%2 - 1 },
		}
		all, each := limiter.NewGroup(config), limiter.NewGroup(config)
		for step := range 20_000 {
			switch random.IntN(40) {
			case 0:
				d := time.Duration(random.Int64N(int64(10 * time.Second)))
				viewOf(all).Hold(d)
				for key := range keys {
					each.Get(key).Hold(d)
				}
			case 1:
				key, d := random.IntN(keys), time.Duration(random.Int64N(int64(10*time.Second)))
				all.Get(key).Hold(d)
				each.Get(key).Hold(d)
			case 2:
				config.Rate, config.Burst = limiter.PerSecond(float64(1+random.IntN(9))), 1+random.IntN(9)
				require.NoError(t, all.Reconfigure(config))
				require.NoError(t, each.Reconfigure(config))
			case 3:
				time.Sleep(time.Duration(random.Int64N(int64(20 * time.Second))))
			}
			key, n := random.IntN(keys), random.IntN(4)
			if random.IntN(10) == 0 {
				// RetryAfter at a time in the past depends on when the hold was dropped. The
				// decision does not.
				stale := time.Now().Add(-time.Duration(random.Int64N(int64(5 * time.Second))))
				require.Equal(t, each.Get(key).TakeAt(stale, n).OK, all.Get(key).TakeAt(stale, n).OK, "step %d: stale", step)
			}
			require.Equal(t, each.Get(key).Take(n), all.Get(key).Take(n), "step %d: %d tokens of key %d", step, n, key)
			time.Sleep(time.Duration(random.Int64N(int64(300 * time.Millisecond))))
		}
	})
}

// While all keys are held, no caller gets a token, not even a caller that waits.
func TestHoldOfAllKeysUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := limiter.NewGroup(limiter.GroupConfig[int]{Rate: limiter.PerSecond(100), MaxKeys: 50, ShareNew: true})
		var held sync.RWMutex // its writer holds the group
		var until time.Time
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		var callers sync.WaitGroup
		for caller := range 20 {
			callers.Go(func() {
				for i := 0; ctx.Err() == nil; i++ {
					if g.Get(caller*7+i%9).Wait(ctx, 1) != nil {
						return
					}
					held.RLock()
					early := time.Now().Before(until)
					held.RUnlock()
					if early {
						t.Error("a token was given during the hold")
					}
					time.Sleep(time.Duration(1+caller) * time.Millisecond)
				}
			})
		}
		for range 20 {
			time.Sleep(150*time.Millisecond + time.Microsecond)
			synctest.Wait() // no caller is between its token and its check
			held.Lock()
			viewOf(g).Hold(200 * time.Millisecond)
			until = time.Now().Add(200 * time.Millisecond)
			held.Unlock()
		}
		callers.Wait()
	})
}

// A hold is over by now. A request at an earlier time, during the hold, is refused, also for a new
// key.
func TestStaleRequestDuringAHoldOfAllKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := limiter.NewGroup(limiter.GroupConfig[int]{Rate: limiter.PerSecond(1), Burst: 5})
		viewOf(g).Hold(10 * time.Second)
		during := time.Now().Add(5 * time.Second)
		time.Sleep(time.Hour)
		for key := range 1000 { // in all parts of the table
			g.Get(key).Take(0)
		}
		require.False(t, g.Get(2000).TakeAt(during, 1).OK)
		require.True(t, g.Get(2001).Take(5).OK)
	})
}

// Keys without room share a bucket, which has one token after the hold, as all buckets have.
func TestHoldOfKeysWithoutRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := limiter.NewGroup(limiter.GroupConfig[int]{Rate: limiter.PerMinute(1), Burst: 5, MaxKeys: 1, ShareNew: true})
		require.True(t, g.Get(1).Take(5).OK)
		viewOf(g).Hold(30 * time.Second)
		require.False(t, g.Get(2).Take(1).OK)
		time.Sleep(30 * time.Second)
		require.True(t, g.Get(2).Take(1).OK)
		require.False(t, g.Get(3).Take(1).OK)
	})
}

// After a reset of all keys, each has a full bucket and no hold, whether it had room or not.
func TestResetOfAllKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := limiter.NewGroup(limiter.GroupConfig[int]{Rate: limiter.PerMinute(1), Burst: 2, MaxKeys: 3, ShareNew: true})
		for key := range 5 {
			g.Get(key).Take(2)
			g.Get(key).Hold(time.Hour)
		}
		waited := make(chan error, 1)
		go func() { waited <- g.Get(1).Wait(t.Context(), 1) }()
		synctest.Wait()
		viewOf(g).Hold(2 * time.Hour)
		start := time.Now()
		require.NoError(t, viewOf(g).Reset(t.Context(), ""))
		require.NoError(t, <-waited)
		require.Zero(t, time.Since(start), "a waiter is served at once")
		require.Equal(t, 1, g.Get(1).Take(0).Remaining)
		require.True(t, g.Get(2).Take(2).OK)
		require.True(t, g.Get(3).Take(2).OK)
		require.Equal(t, 3, g.Len())
		require.True(t, g.Get(4).Take(2).OK, "the bucket of keys without room is full too")
		require.False(t, g.Get(5).Take(1).OK)
	})
}
