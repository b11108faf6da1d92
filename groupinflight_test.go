package weir_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/limiter"
)

func TestEachKeyHasItsOwnSlots(t *testing.T) {
	withBothBounds(t, func(t *testing.T, c weir.Config) {
		g := hosts(weir.GroupConfig{Gate: c})
		require.NoError(t, g.Get("a").Run(bg(), func(context.Context) error {
			require.ErrorIs(t, g.Get("a").Run(bg(), succeed), inflight.ErrFull)
			require.NoError(t, g.Get("b").Run(bg(), succeed))
			require.Equal(t, 1, callsInFlight(g))
			return nil
		}))
		require.Zero(t, callsInFlight(g))
		require.Equal(t, limiter.Stats{Allowed: 2, Refused: 1}, g.Admissions())
	})
}

// Keys without room share one bound.
func TestKeysWithoutRoomShareTheirSlots(t *testing.T) {
	withBothBounds(t, func(t *testing.T, c weir.Config) {
		g := hosts(weir.GroupConfig{MaxKeys: 2, Gate: c})
		for i := range 10 {
			_ = g.Get(fmt.Sprint("busy", i)).Run(bg(), fail)
		}
		require.NoError(t, g.Get("late").Run(bg(), func(context.Context) error {
			require.ErrorIs(t, g.Get("later").Run(bg(), succeed), inflight.ErrFull)
			require.Equal(t, 1, callsInFlight(g))
			return nil
		}))
		require.NoError(t, g.Get("later").Run(bg(), succeed))
	})
}

// A key that gets room does not exceed its bound by the calls that began before, and has its own
// bound when they have ended.
func TestAKeyThatGetsRoomKeepsItsBound(t *testing.T) {
	withBothBounds(t, func(t *testing.T, c weir.Config) {
		for _, end := range []func(*breaker.Permit){
			func(p *breaker.Permit) { p.Record(breaker.Success) },
			func(p *breaker.Permit) { p.Record(breaker.Ignored) },
			func(p *breaker.Permit) { *p = breaker.Permit{} }, // a forgotten permit
		} {
			g := hosts(weir.GroupConfig{MaxKeys: 1, MaxSeries: breaker.Off, Gate: c})
			g.Get("a").Breaker().OpenFor(time.Hour) // so it is not replaced
			early := g.Get("b")
			permit, err := early.Allow(bg())
			require.NoError(t, err)
			require.True(t, g.Forget("a"))
			for _, gate := range []*weir.Gate{early, g.Get("b")} {
				require.ErrorIs(t, gate.Run(bg(), succeed), inflight.ErrFull)
			}
			require.Equal(t, 1, callsInFlight(g))
			end(&permit)
			for g.Get("b").Run(bg(), succeed) != nil {
				runtime.GC()
				time.Sleep(time.Millisecond)
			}
			require.NoError(t, g.Get("b").Run(bg(), func(context.Context) error {
				require.ErrorIs(t, early.Run(bg(), succeed), inflight.ErrFull)
				return g.Get("stranger").Run(bg(), succeed) // it has no room, but a slot
			}))
			require.Zero(t, callsInFlight(g))
		}
	})
}

// A NaN is never found in a map, so nothing may be stored for it.
func TestKeysThatAreNaNTakeNoMemory(t *testing.T) {
	g := weir.NewGroup[float64]("g", weir.GroupConfig{Gate: weir.Config{MaxConcurrent: 1}})
	run := func() {
		for range 20_000 {
			require.NoError(t, g.Get(math.NaN()).Run(bg(), succeed))
		}
	}
	run()
	before := heapInUse()
	run()
	require.Less(t, heapInUse()-before, 100_000)
	runtime.KeepAlive(g)
}

// Keys lose their room and get it again all the time.
func TestKeysThatComeAndGoKeepTheirBounds(t *testing.T) {
	const keys, most = 5, 2
	g := hosts(weir.GroupConfig{MaxKeys: 2, MaxSeries: breaker.Off, Gate: weir.Config{
		MaxConcurrent: most, MaxWait: time.Millisecond, Breaker: breaker.Config{Window: time.Millisecond},
	}})
	var inFlight [keys]atomic.Int64
	var room, none atomic.Int64
	var all sync.WaitGroup
	for i := range 8 {
		r := rand.New(rand.NewPCG(1, uint64(i)))
		all.Go(func() {
			for began := time.Now(); time.Since(began) < time.Second; {
				key := r.IntN(keys)
				gate := g.Get(fmt.Sprint(key))
				if gate == g.Get(fmt.Sprint(key)) {
					room.Add(1)
				} else {
					none.Add(1)
				}
				for range 1 + r.IntN(2) {
					_ = gate.Run(bg(), func(context.Context) error {
						if n := inFlight[key].Add(1); n > most {
							t.Errorf("%d calls in flight", n)
						}
						time.Sleep(time.Duration(r.IntN(5)*r.IntN(5)) * 100 * time.Microsecond)
						inFlight[key].Add(-1)
						return nil
					})
				}
			}
		})
	}
	all.Wait()
	require.Zero(t, callsInFlight(g))
	require.Positive(t, room.Load())
	require.Positive(t, none.Load())
}

// A call that waits for a slot of the shared bound gets one of its key's own bound as soon as the
// key has it.
func TestAWaitingCallGetsASlotOfItsOwnBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := hosts(weir.GroupConfig{MaxKeys: 1, MaxSeries: breaker.Off, Gate: weir.Config{MaxConcurrent: 1, MaxWait: time.Minute}})
		g.Get("a").Breaker().OpenFor(time.Hour) // so it is not replaced
		stranger, err := g.Get("stranger").Allow(bg())
		require.NoError(t, err)
		got := make(chan error, 1)
		go func() { got <- g.Get("b").Run(bg(), succeed) }()
		synctest.Wait()
		require.True(t, g.Forget("a"))
		require.NoError(t, g.Get("b").Run(bg(), succeed), "it has room, and none of its calls is in flight")
		stranger.Record(breaker.Success)
		require.NoError(t, <-got)
		require.Zero(t, callsInFlight(g))
	})
}

// A key whose call is in flight keeps its gate, however many other keys come.
func TestAKeyWithCallsInFlightIsNotEvicted(t *testing.T) {
	withBothBounds(t, func(t *testing.T, c weir.Config) {
		g := hosts(weir.GroupConfig{MaxKeys: 4, MaxSeries: breaker.Off, Gate: c})
		come := func() {
			for i := range 100 {
				time.Sleep(time.Minute) // so that no window has calls
				_ = g.Get(fmt.Sprint(i)).Run(bg(), succeed)
			}
		}
		held := g.Get("held")
		require.NoError(t, held.Run(bg(), func(context.Context) error {
			come()
			require.Same(t, held, g.Get("held"))
			require.ErrorIs(t, g.Get("held").Run(bg(), succeed), inflight.ErrFull)
			return nil
		}))
		come()
		require.NotSame(t, held, g.Get("held"), "it was evicted")

		// The gate that was kept uses the slots that the key has now.
		require.NoError(t, held.Run(bg(), func(context.Context) error {
			require.ErrorIs(t, g.Get("held").Run(bg(), succeed), inflight.ErrFull)
			require.ErrorIs(t, held.Run(bg(), succeed), inflight.ErrFull)
			return nil
		}))
		require.NoError(t, g.Get("held").Run(bg(), succeed))
		require.Zero(t, callsInFlight(g))
	})
}

// Calls that wait for a slot of a forgotten key get one of its new slots.
func TestForgetMovesWaitersToTheNewSlots(t *testing.T) {
	withBothBounds(t, func(t *testing.T, c weir.Config) {
		c.MaxWait = time.Minute
		g := hosts(weir.GroupConfig{Gate: c})
		old := g.Get("a")
		permit, err := old.Allow(bg())
		require.NoError(t, err)
		began, got := time.Now(), make(chan error, 1)
		go func() { got <- old.Run(t.Context(), succeed) }()
		synctest.Wait()
		time.Sleep(time.Second)
		require.True(t, g.Forget("a"))
		require.NoError(t, <-got)
		require.Equal(t, time.Second, time.Since(began))
		require.Zero(t, callsInFlight(g))
		permit.Record(breaker.Success) // releases one of the old slots
		require.Zero(t, callsInFlight(g))
		require.NoError(t, old.Run(bg(), succeed))
	})
}

func TestReconfigureChangesMaxConcurrent(t *testing.T) {
	withBothBounds(t, func(t *testing.T, c weir.Config) {
		g := hosts(weir.GroupConfig{Gate: c})
		a := g.Get("a")
		c.MaxConcurrent = 2
		require.NoError(t, g.Reconfigure(c))
		for _, gate := range []*weir.Gate{a, g.Get("b")} {
			require.NoError(t, gate.Run(bg(), func(context.Context) error {
				return gate.Run(bg(), func(context.Context) error {
					require.ErrorIs(t, gate.Run(bg(), succeed), inflight.ErrFull)
					return nil
				})
			}))
		}
		values, _ := readMetrics(g)
		require.InDelta(t, 2, values["weir.inflight.limit"], 0)
	})
}

// Many goroutines call few keys in little room, so that keys are evicted all the time, and forget
// and reconfigure them. No key ever has more calls in flight than its bound, and no slot is lost.
// (A forgotten key may have calls in its old slots and in its new ones at the same time, so the
// test forgets no key that is called.)
func TestStormOfKeys(t *testing.T) {
	for _, adaptive := range []bool{false, true} {
		t.Run(fmt.Sprintf("adaptive=%t", adaptive), func(t *testing.T) { stormOfKeys(t, adaptive) })
	}
}

func stormOfKeys(t *testing.T, adaptive bool) {
	const keys, bound, callers, rounds = 12, 2, 8, 400
	c := weir.Config{
		MaxConcurrent: bound, Adaptive: adaptive, MaxWait: time.Millisecond,
		Breaker: breaker.Config{Window: time.Millisecond, FailureRate: breaker.Off},
	}
	g := hosts(weir.GroupConfig{MaxKeys: 6, MaxSeries: breaker.Off, Gate: c})
	var flying [keys]atomic.Int64
	var kept [keys]*weir.Gate
	for i := range kept {
		kept[i] = g.Get(fmt.Sprint(i))
	}
	var wg sync.WaitGroup
	for caller := range callers {
		wg.Go(func() {
			for i := range rounds {
				key := (caller*7 + i*5) % keys
				gate := g.Get(fmt.Sprint(key))
				if i%3 == 0 {
					gate = kept[key]
				}
				_ = gate.Run(t.Context(), func(context.Context) error {
					defer flying[key].Add(-1)
					if n := flying[key].Add(1); n > bound+bound {
						// those without room share another bound
						t.Errorf("key %d has %d calls in flight", key, n)
					}
					return nil
				})
				if i%50 == 0 {
					g.Forget("nobody")
					next := c
					next.MaxConcurrent = 1 + i/50%bound
					if i%100 == 0 {
						next.Rate = limiter.PerSecond(1e9)
					}
					next.RefuseHopeless = i%150 == 0
					if err := g.Reconfigure(next); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	require.Zero(t, callsInFlight(g))
}
