package limiter_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/friend"
	"github.com/weir-go/weir/limiter"
)

func TestWaitForAKeyWithoutRoomIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := limiter.NewGroup(limiter.GroupConfig[int]{Rate: limiter.PerMinute(1), Burst: 1, MaxKeys: 10, MaxWaiters: 1})
		for key := range 10 {
			require.True(t, g.Get(key).Take(1).OK)
		}
		began := time.Now()
		for key := range 100 {
			for _, limit := range []time.Duration{0, 10 * ms, hour, limiter.Never} {
				err := limiter.WaitAtMost(t.Context(), g.Get(100+key), 1, limit)
				require.EqualError(t, err, "limiter: no room for the key: MaxKeys is 10 (limit 1), retry in 1m0s")
			}
		}
		require.EqualError(t, g.Get(100).Wait(t.Context(), 2), "limiter: more than the limit (limit 1)")
		require.NoError(t, g.Get(100).Wait(t.Context(), 0))
		require.Zero(t, time.Since(began))
		require.NoError(t, g.Get(3).Wait(t.Context(), 1), "callers can wait for a known key")
		require.Equal(t, time.Minute, time.Since(began))
		time.Sleep(time.Nanosecond)
		require.NoError(t, g.Get(100).Wait(t.Context(), 1), "there is room now")
	})
}

// The keys belong to many shards, and share one bucket.
func TestKeysWithoutRoomShareOneBucketAndOneQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keys = 1000 // eight shards
		g := limiter.NewGroup(limiter.GroupConfig[int]{
			Rate: limiter.PerMinute(1), Burst: 2, MaxKeys: keys, MaxWaiters: 3, ShareNew: true,
		})
		for key := range keys {
			require.True(t, g.Get(key).Take(1).OK)
		}
		allowed := 0
		for key := range keys {
			if g.Get(keys + key).Take(1).OK {
				allowed++
			}
		}
		require.Equal(t, 2, allowed)
		require.ErrorIs(t, limiter.WaitAtMost(t.Context(), g.Get(5000), 1, time.Minute-1), limiter.ErrLimited)
		began := time.Now()
		var served, full atomic.Int32
		var all sync.WaitGroup
		for key := range 20 {
			all.Go(func() {
				if err := g.Get(6000+key).Wait(t.Context(), 1); err == nil {
					served.Add(1)
				} else {
					requireQueueFull(t, err)
					full.Add(1)
				}
			})
		}
		all.Wait()
		require.EqualValues(t, 3, served.Load())
		require.EqualValues(t, 17, full.Load())
		require.Equal(t, 3*time.Minute, time.Since(began))
	})
}

func TestEveryKeyUpToMaxKeysHasRoom(t *testing.T) {
	for _, most := range []int{1, 10, 128, 129, 200, 257, 1000, 10_000} {
		g := limiter.NewGroupAt(limiter.GroupConfig[int]{Rate: limiter.Per(1, time.Hour), Burst: 1, MaxKeys: most}, start)
		for key := range most {
			require.True(t, g.Get(key).TakeAt(start, 1).OK, "key %d of %d", key, most)
		}
		require.False(t, g.Get(most).TakeAt(start, 1).OK)
		require.Equal(t, most, g.Len())
	}
}

// A group that is full of idle keys gets the same number of new keys.
func TestIdleKeysOfAllShardsAreEvicted(t *testing.T) {
	const keys = 1000
	g := limiter.NewGroupAt(limiter.GroupConfig[int]{Rate: limiter.PerSecond(1), Burst: 1, MaxKeys: keys}, start)
	refused := 0
	for round := range 5 {
		for key := range keys {
			if !g.Get(keys*round+key).TakeAt(start.Add(time.Duration(round)*time.Minute), 1).OK {
				refused++
			}
		}
		require.LessOrEqual(t, g.Len(), keys)
	}
	// about 16 of 5,000, and 76 once in 400 runs
	require.Less(t, refused, 5*keys/20, "32 slots are seldom full of keys that are new too")
}

func TestANaNKeyHasNoRoom(t *testing.T) {
	for shareNew, want := range map[bool]int{false: 0, true: 3} {
		g := limiter.NewGroup(limiter.GroupConfig[float64]{Rate: limiter.Per(1, time.Hour), Burst: 3, ShareNew: shareNew})
		allowed := 0
		for i := range 100 {
			if g.Get(math.NaN()).Take(1).OK {
				allowed++
			}
			cancelled, cancel := context.WithTimeout(t.Context(), time.Duration(i%2))
			_ = g.Get(math.NaN()).Wait(cancelled, 2)
			cancel()
			g.Get(math.NaN()).Hold(hour)
			g.Get(math.NaN()).RefundNow(1)
		}
		require.Equal(t, want, allowed)
		require.Zero(t, g.Len())
		require.True(t, g.Get(1).Take(1).OK)
	}
}

// More keys are held than MaxKeys. Further keys are not held until the first holds have ended.
func TestHeldKeysAreBounded(t *testing.T) {
	g := limiter.NewGroupAt(limiter.GroupConfig[int]{Rate: limiter.PerSecond(1), Burst: 2, MaxKeys: 100}, start)
	held := func(at time.Duration, from int) (n int) {
		for key := range 300 {
			g.Get(from+key).HoldAt(start.Add(at), 10*sec)
		}
		for key := range 300 {
			if !g.Get(from+key).TakeAt(start.Add(at), 0).OK {
				n++
			}
		}
		return n
	}
	require.Equal(t, 100, held(0, 0))
	require.Equal(t, 100, held(hour, 1000))
	require.LessOrEqual(t, g.Len(), 100)
}

// A key and a bucket get the same requests, including several changes of the limits at once. All
// answers are equal.
func TestAGroupDecidesLikeATokenBucket(t *testing.T) {
	rates := []limiter.Rate{
		limiter.PerSecond(1), limiter.PerSecond(100), limiter.PerSecond(3), limiter.Per(7, time.Hour), limiter.PerSecond(1e6 / 7.0), limiter.Unlimited(), limiter.Per(3, 2),
	}
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 7))
		l := adjustableLimiters(rates[seed%5], 10)
		key, alone := l["key"], l["bucket"]
		var at time.Duration
		for i := range 200 {
			if random.IntN(3) > 0 {
				at += time.Duration(random.Int64N(int64(sec) << random.IntN(5)))
			}
			n := random.IntN(12)
			switch random.IntN(8) {
			case 0:
				r, burst := rates[random.IntN(len(rates))], 1+random.IntN(20)
				if random.IntN(10) == 0 {
					burst = limiter.Off
				}
				key.set(at, r, burst)
				alone.set(at, r, burst)
			case 1:
				d := time.Duration(random.Int64N(int64(10*sec))) - sec
				key.hold(at, d)
				alone.hold(at, d)
			case 2:
				limiter.Refund(key, n)
				limiter.Refund(alone, n)
			default:
				asked := start.Add(at)
				require.Equal(t, resultText(alone.TakeAt(asked, n)), resultText(key.TakeAt(asked, n)), "seed %d, step %d: Take(%d) at %s", seed, i, n, at)
			}
		}
	}
}

func TestAGroupRemembers100000KeysByDefault(t *testing.T) {
	g := limiter.NewGroupAt(limiter.GroupConfig[int]{Rate: limiter.Per(1, time.Hour), Burst: 1}, start)
	for key := range 100_100 {
		require.Equal(t, key < 100_000, g.Get(key).TakeAt(start, 1).OK, key)
	}
}

// After a hold a key has one token, also if other keys have taken its place in the meantime.
func TestAKeyIsNotNewAfterItsHold(t *testing.T) {
	for _, shareNew := range []bool{false, true} {
		g := limiter.NewGroupAt(limiter.GroupConfig[string]{Rate: limiter.Per(1, time.Minute), Burst: 10, MaxKeys: 2, ShareNew: shareNew}, start)
		a := g.Get("a")
		a.TakeAt(start, 1)
		at := 2 * time.Minute // its bucket is full again
		a.HoldAt(start.Add(at), 10*sec)
		g.Get("b").TakeAt(start.Add(at), 5)
		g.Get("c").TakeAt(start.Add(at), 5)
		at += 10 * sec
		runSteps(t, a, step{at, 0, "ok 1/10 reset 9m0s"}, step{at, 1, "ok"}, step{at, 1, "refused"}, step{at + time.Minute, 1, "ok"})
		require.LessOrEqual(t, g.Len(), 2, shareNew)
	}
}

// Holds that are over make room for others, although the buckets of their keys are not full yet.
func TestHoldsThatAreOverMakeRoom(t *testing.T) {
	g := limiter.NewGroupAt(limiter.GroupConfig[int]{Rate: limiter.Per(1, time.Hour), Burst: 100, MaxKeys: 100, Name: "logins"}, start)
	for key := range 100 {
		g.Get(key).HoldAt(start, sec)
	}
	g.Get(1000).HoldAt(start, hour)
	require.EqualValues(t, 1, readMetrics(t, g)["weir.limiter.no_room"], "100 keys are held")
	runSteps(t, g.Get(1000), step{0, 1, "ok"})

	g.Get(1000).HoldAt(start.Add(hour), 10*time.Minute)
	runSteps(t, g.Get(1000), step{hour, 1, "refused"}, step{hour + 10*time.Minute, 2, "refused"})
	runSteps(t, g.Get(1), step{hour + sec, 3, "refused"}, step{hour + sec, 2, "ok"}, step{hour + sec, 1, "refused"})
	require.EqualValues(t, 1, readMetrics(t, g)["weir.limiter.no_room"])
}

// "A key in use is never forgotten": if a hold is over and there is no room for the bucket of its
// key, the key keeps its place among the holds.
func TestAHoldThatIsOverKeepsItsPlaceUntilThereIsRoom(t *testing.T) {
	g := limiter.NewGroupAt(limiter.GroupConfig[string]{Rate: limiter.Per(1, time.Minute), Burst: 3, MaxKeys: 1, Name: "logins"}, start)
	runSteps(t, g.Get("in use"), step{0, 3, "ok"})
	g.Get("held").HoldAt(start, sec)
	g.Get("other").HoldAt(start.Add(sec), sec)
	require.EqualValues(t, 1, readMetrics(t, g)["weir.limiter.no_room"], "there is no room for another hold")
	runSteps(t, g.Get("held"), step{sec, 2, "refused"}, step{sec, 1, "ok"}, step{sec, 1, "refused"})
	g.Get("other").HoldAt(start.Add(4*time.Minute), sec)
	require.EqualValues(t, 1, readMetrics(t, g)["weir.limiter.no_room"], "the bucket is full again")
	runSteps(t, g.Get("other"), step{4 * time.Minute, 1, "refused"})
	runSteps(t, g.Get("held"), step{2 * sec, 0, "ok 0/3 reset 2m59s"}, step{4 * time.Minute, 3, "ok"})
}

// A token is given back to a key whose bucket is in its hold, because there is no room for it. The
// bucket that keys without room share does not get it.
func TestATokenOfAHeldKeyWithoutRoomIsGivenBack(t *testing.T) {
	type embedded struct{ limiter.Keyed[string] }
	for name, of := range map[string]func(limiter.Keyed[string]) limiter.Limiter{
		"the key":  func(k limiter.Keyed[string]) limiter.Limiter { return k },
		"embedded": func(k limiter.Keyed[string]) limiter.Limiter { return embedded{k} },
	} {
		for _, shareNew := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				g := limiter.NewGroup(limiter.GroupConfig[string]{Rate: limiter.Per(1, time.Minute), Burst: 3, MaxKeys: 1, ShareNew: shareNew})
				held := g.Get("held")
				held.Hold(sec)
				require.True(t, g.Get("in use").Take(3).OK)
				time.Sleep(sec)
				require.Equal(t, shareNew, g.Get("new").Take(3).OK)
				r := limiter.Reserve(of(held), 1)
				require.True(t, r.OK)
				require.False(t, held.Take(1).OK, "a key has one token after its hold")
				r.Refund(1)
				require.False(t, g.Get("new").Take(1).OK, name)
				require.True(t, held.Take(1).OK, name)
				require.False(t, held.Take(1).OK)
			})
		}
	}
}

// A key that takes its token after a hold without room has not got it back when it gets room.
func TestAKeyThatGetsRoomAfterItsHoldKeepsItsBucket(t *testing.T) {
	g := limiter.NewGroupAt(limiter.GroupConfig[string]{Rate: limiter.Per(1, time.Minute), Burst: 3, MaxKeys: 1}, start)
	g.Get("in use").TakeAt(start, 3)
	g.Get("held").HoldAt(start, sec)
	runSteps(t, g.Get("held"), step{sec, 1, "ok"})
	require.True(t, g.Forget("in use"))
	runSteps(t, g.Get("held"), step{sec, 1, "refused"}, step{sec + time.Minute, 1, "ok"})
	require.Equal(t, 1, g.Len())
}

// If the holds of all keys end at once, there is room for others.
func TestForgettingAllKeysMakesRoomForHolds(t *testing.T) {
	g := limiter.NewGroup(limiter.GroupConfig[int]{Rate: limiter.Per(1, time.Hour), Burst: 3, MaxKeys: 2})
	for key := range 6 {
		if key%2 == 0 {
			g.Inside(friend.Key{}).ForgetAll()
		}
		g.Get(key).Hold(time.Hour)
		require.False(t, g.Get(key).Take(1).OK, key)
	}
}

// The answer and the error of a request without room say so.
func TestARefusalForLackOfRoomSaysSo(t *testing.T) {
	for shareNew, want := range map[bool]string{
		false: "limiter logins: no room for the key: MaxKeys is 1 (limit 2), retry in ",
		true:  "limiter logins: no tokens left (limit 2), which all keys without room share: MaxKeys is 1, retry in ",
	} {
		g := limiter.NewGroup(limiter.GroupConfig[int]{Rate: limiter.Per(1, time.Hour), Burst: 2, MaxKeys: 1, ShareNew: shareNew, Name: "logins"})
		r := g.Get(1).Take(2)
		require.True(t, r.OK)
		require.False(t, r.NoRoom)
		r = g.Get(2).Take(2)
		require.True(t, r.NoRoom)
		require.Equal(t, shareNew, r.OK)
		err := limiter.WaitAtMost(t.Context(), g.Get(3), 1, sec)
		require.ErrorContains(t, err, want)
		limited, ok := errors.AsType[*limiter.LimitedError](err)
		require.True(t, ok)
		require.Equal(t, 1, limited.MaxKeys)
		require.EqualValues(t, 2, readMetrics(t, g)["weir.limiter.no_room"])
	}
}

// So do those of a Joint of such a key and others.
func TestAJointSaysThatAKeyHasNoRoom(t *testing.T) {
	g := limiter.NewGroup(limiter.GroupConfig[int]{Rate: limiter.Per(1, time.Hour), Burst: 2, MaxKeys: 1})
	require.True(t, g.Get(1).Take(2).OK)
	other := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: 5})
	nested := limiter.NewJoint("", g.Get(2), newSlidingLog(9, hour))
	j := limiter.NewJoint("j", g.Get(1), other, nested)
	require.True(t, j.Take(1).NoRoom)
	require.ErrorContains(t, j.Wait(t.Context(), 1), "limiter j: no room for the key: MaxKeys is 1 (limit 2), retry in ")

	known := limiter.NewJoint("", g.Get(1), other)
	require.False(t, known.Take(1).NoRoom)
}
