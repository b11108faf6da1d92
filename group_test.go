package weir_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/limiter"
)

func hosts(c weir.GroupConfig) *weir.Group[string] { return weir.NewGroup[string]("hosts", c) }

func TestGatesOfAKeyShareState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := hosts(weir.GroupConfig{Gate: weir.Config{
			Rate: limiter.PerSecond(1), Burst: 2, Breaker: breaker.Config{ConsecutiveFailures: 2},
		}})
		kept := g.Get("a")
		require.NoError(t, kept.Run(t.Context(), succeed))
		require.NoError(t, g.Get("a").Run(t.Context(), succeed))
		require.ErrorIs(t, kept.Run(t.Context(), succeed), limiter.ErrLimited)
		require.ErrorIs(t, g.Get("a").Run(t.Context(), succeed), limiter.ErrLimited)
		require.NoError(t, g.Get("b").Run(t.Context(), succeed), "another key has its own limit")

		time.Sleep(2 * time.Second)
		for range 2 {
			require.ErrorIs(t, g.Get("a").Run(t.Context(), fail), errDown)
		}
		require.True(t, kept.Tripped())
		require.ErrorIs(t, kept.Run(t.Context(), succeed), breaker.ErrOpen)
		require.False(t, g.Get("b").Tripped())
		require.Equal(t, "hosts", kept.Name())
		require.Equal(t, 2, g.Len())
		require.ElementsMatch(t, []string{"a", "b"}, slices.Collect(maps.Keys(maps.Collect(g.All()))))
		require.Equal(t, limiter.Stats{Allowed: 5, Refused: 2}, g.Stats())
		require.Equal(t, g.Stats(), kept.Stats())
	})
}

func TestGroupWithoutARateHasNoLimit(t *testing.T) {
	g := hosts(weir.GroupConfig{})
	for range 100 {
		require.NoError(t, g.Get("a").Run(t.Context(), succeed))
	}
	require.Nil(t, g.Get("a").Limiter())
	for s := range g.Observe {
		require.NotContains(t, s.Instrument.Name, "weir.limiter")
	}
}

// A flood of keys takes bounded memory and evicts no key in use. Each key has a bucket of its own
// as long as there are buckets, and keys without one share one.
func TestFloodOfKeysIsBounded(t *testing.T) {
	c := weir.GroupConfig{MaxKeys: 100, MaxSeries: 5, Gate: weir.Config{
		Rate: limiter.Per(1, time.Hour), Burst: 1, Breaker: breaker.Config{ConsecutiveFailures: 1, Cooldown: time.Hour},
	}}
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(before)
	for buckets, g := range map[int]*weir.Group[string]{
		1000: weir.NewGroupWithBuckets[string]("hosts", c, 1000), 1_000_000: hosts(c),
	} {
		log.Reset()
		require.ErrorIs(t, g.Get("bad").Run(t.Context(), fail), errDown)
		const keys = 10_000
		for i := range keys {
			_ = g.Get(fmt.Sprint("flood", i)).Run(t.Context(), fail)
		}
		require.LessOrEqual(t, g.Len(), 100)
		require.ErrorIs(t, g.Get("bad").Run(t.Context(), succeed), breaker.ErrOpen, "the key is not evicted")
		require.Equal(t, buckets < keys, strings.Count(log.String(), `group \"hosts\" has no token bucket for new keys, which share one: raise MaxKeys, there are 1000 buckets`) == 1)
		have := min(buckets, 1+keys)
		require.InDelta(t, have, g.Stats().Allowed, 2, "one of each bucket")
		lines, remembered := 0, 0.0
		for s, v := range g.Observe {
			lines++
			if s.Instrument == instrument.LimiterKeys {
				remembered = v
			}
			require.False(t, strings.HasPrefix(s.Values[0], "flood"))
		}
		require.LessOrEqual(t, lines, 400)
		require.InDelta(t, have, remembered, 1)
	}
}

// Fifty thousand tenants with a call per second each, at a limit of 20, are never refused, whether
// a group has room for their breakers or not.
func TestManyKeysAreNotRefusedForRoom(t *testing.T) {
	const tenants = 50_000 / fewer
	for name, maxKeys := range map[string]int{"by default": 0, "little room": 1000 / fewer} {
		synctest.Test(t, func(t *testing.T) {
			g := weir.NewGroup[int]("tenants", weir.GroupConfig{MaxKeys: maxKeys, Gate: weir.Config{Rate: limiter.PerSecond(20)}})
			for range 3 {
				for i := range tenants {
					if err := g.Get(i).Run(bg(), succeed); err != nil { // require is slow
						require.NoError(t, err, name)
					}
				}
				time.Sleep(time.Second)
			}
			require.Zero(t, g.Stats().Refused)
			if maxKeys == 0 {
				require.Equal(t, tenants, g.Len())
			}
		})
	}
}

func TestGroupConfigNamesAllFaults(t *testing.T) {
	c := weir.GroupConfig{MaxKeys: -1, MaxSeries: -2, Gate: weir.Config{MaxWait: -1, Breaker: breaker.Config{MinCalls: -7}}}
	err := c.Validate()
	for _, fault := range []string{"Gate: weir: MaxWait is -1ns", "MinCalls is -7", "MaxKeys is -1", "MaxSeries is -2"} {
		require.ErrorContains(t, err, fault)
	}
	require.Equal(t, 1, strings.Count(err.Error(), "MinCalls"), "once")
	require.PanicsWithError(t, err.Error(), func() { hosts(c) })
}

// Many goroutines call few keys in a group that is too small for them, so that keys are evicted. No
// key makes more calls than its bucket allows.
func TestKeysAreEvictedUnderLoad(t *testing.T) {
	g := hosts(weir.GroupConfig{MaxKeys: 50, Gate: weir.Config{Rate: limiter.Per(1, time.Hour), Burst: 3}})
	var admitted [20]atomic.Int64
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for i := range 2000 {
				key := (i + worker) % len(admitted)
				err := g.Get(fmt.Sprint(key)).Run(t.Context(), succeed)
				if err == nil {
					admitted[key].Add(1)
				} else if !errors.Is(err, limiter.ErrLimited) {
					t.Error(err)
				}
				if i%10 == 0 {
					g.Get(fmt.Sprint("once", worker, i))
				}
			}
		})
	}
	wg.Wait()
	for i := range admitted {
		require.EqualValues(t, 3, admitted[i].Load(), i)
	}
}

// A gate that is kept after its key was evicted or forgotten works with a breaker of its own, which
// the group does not reconfigure. Its calls still count in the limits of the key.
func TestAGateThatHasLeftItsGroup(t *testing.T) {
	for name, leave := range map[string]func(*weir.Group[string]){
		"evicted": func(g *weir.Group[string]) {
			for i := range 4 {
				g.Get(fmt.Sprint("other", i))
			}
		},
		"forgotten": func(g *weir.Group[string]) { require.True(t, g.Forget("a")) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := weir.Config{Breaker: breaker.Config{ConsecutiveFailures: 9}, MaxConcurrent: 2, Rate: limiter.Per(1, time.Hour), Burst: 20}
				g := hosts(weir.GroupConfig{MaxKeys: 2, MaxSeries: breaker.Off, Gate: c})
				kept := g.Get("a")
				require.NoError(t, kept.Run(t.Context(), succeed))
				time.Sleep(time.Minute)
				leave(g)
				now := g.Get("a")
				require.NotSame(t, kept, now)
				c.Breaker.ConsecutiveFailures = 3
				require.NoError(t, g.ReconfigureGates(c))
				for range 3 {
					require.ErrorIs(t, now.Run(t.Context(), fail), errDown)
					require.ErrorIs(t, kept.Run(t.Context(), fail), errDown)
				}
				require.True(t, now.Tripped())
				require.False(t, kept.Tripped())
				require.EqualValues(t, 3, now.Totals().Failures)
				now.Breaker().Reset()

				var permits [2]weir.Permit
				for i, gate := range []*weir.Gate{kept, now} {
					var err error
					permits[i], err = gate.Allow(t.Context())
					require.NoError(t, err)
				}
				for _, gate := range []*weir.Gate{kept, now, g.Get("a")} {
					require.ErrorIs(t, gate.Run(t.Context(), succeed), inflight.ErrFull)
				}
				for i := range permits {
					permits[i].Record(bg(), nil, breaker.Success)
				}
				for range 11 {
					_ = kept.Run(t.Context(), succeed)
				}
				if name == "evicted" { // Forget fills the bucket
					require.ErrorIs(t, now.Run(t.Context(), succeed), limiter.ErrLimited)
				}
			})
		})
	}
}

func TestGroupGetAllocatesNothing(t *testing.T) {
	for name, c := range map[string]weir.Config{"no rate": {}, "a rate": {Rate: limiter.PerSecond(1e6), Burst: 1 << 30}} {
		g := hosts(weir.GroupConfig{Gate: c})
		gate := g.Get("a")
		require.Zero(t, testing.AllocsPerRun(1000, func() {
			if g.Get("a") != gate {
				t.Fatal("Get returned another gate")
			}
			_ = g.Get("a").Run(bg(), succeed)
		}), name)
	}
}

// Concurrent calls of Get for a new key return the same gate.
func TestGroupReturnsOneGatePerKey(t *testing.T) {
	g := weir.NewGroup[int]("g", weir.GroupConfig{})
	var gates [8][500]*weir.Gate
	var wg sync.WaitGroup
	for caller := range gates {
		wg.Go(func() {
			for key := range gates[caller] {
				gates[caller][key] = g.Get(key)
			}
		})
	}
	wg.Wait()
	for _, others := range gates[1:] {
		require.Equal(t, gates[0], others)
	}
	require.Equal(t, 500, g.Len())
}

func TestGroupAllYieldsGates(t *testing.T) {
	g := hosts(weir.GroupConfig{})
	want := map[string]*weir.Gate{"a": g.Get("a"), "b": g.Get("b")}
	require.Equal(t, want, maps.Collect(g.All()))
	for range g.All() {
		break
	}
}

func TestGroupForgetsAKeyInAnyState(t *testing.T) {
	g := hosts(weir.GroupConfig{MaxKeys: 2, Gate: weir.Config{Breaker: breaker.Config{ConsecutiveFailures: 1}}})
	kept := g.Get("a")
	_ = kept.Run(bg(), fail)
	kept.Hold(time.Hour)
	require.ErrorIs(t, kept.Run(bg(), succeed), weir.ErrRefused)
	require.True(t, g.Forget("a"))
	require.False(t, g.Forget("a"))
	require.Zero(t, g.Len())
	require.ErrorIs(t, kept.Run(bg(), succeed), breaker.ErrOpen, "it works alone")
	require.NoError(t, g.Get("a").Run(bg(), succeed))
	require.EqualValues(t, 1, g.Get("a").Totals().Successes)
}

// A forgotten key starts with a full bucket and no hold.
func TestGroupForgetResetsTheBucket(t *testing.T) {
	for _, key := range []string{"a", strings.Repeat("long", 100)} {
		g := hosts(weir.GroupConfig{Gate: weir.Config{Rate: limiter.Per(1, time.Hour), Burst: 1}})
		kept := g.Get(key)
		require.NoError(t, kept.Run(bg(), succeed))
		require.ErrorIs(t, kept.Run(bg(), succeed), limiter.ErrLimited)
		require.True(t, g.Forget(key))
		require.NoError(t, kept.Run(bg(), succeed))
		require.True(t, g.Forget(key))
		kept.Hold(time.Hour)
		g.Forget(key)
		require.NoError(t, kept.Run(bg(), succeed))
	}
}

// A gate stores no second copy of a long key. If the key is part of a longer string, the gate does
// not keep that string in memory.
func TestLongKeysDoNotGrowGates(t *testing.T) {
	const most, size = 128, 1 << 16
	g := hosts(weir.GroupConfig{MaxKeys: 4 * most})
	before := heapInUse()
	for i := range most {
		long := fmt.Sprint(i, strings.Repeat("x", size))
		g.Get(long)
		g.Get(long[:20])
	}
	require.Equal(t, 2*most, g.Len())
	require.Less(t, heapInUse()-before, 2*most*6000)
	runtime.KeepAlive(g)
}

func heapInUse() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

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
		require.Equal(t, limiter.Stats{Allowed: 2, Refused: 1}, g.Stats())
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
		for _, end := range []func(*weir.Permit){
			func(p *weir.Permit) { p.Record(bg(), nil, breaker.Success) },
			func(p *weir.Permit) { p.Record(bg(), nil, breaker.Ignored) },
			func(p *weir.Permit) { *p = weir.Permit{} }, // a forgotten permit
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
		stranger.Record(bg(), nil, breaker.Success)
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
		permit.Record(bg(), nil, breaker.Success) // releases one of the old slots
		require.Zero(t, callsInFlight(g))
		require.NoError(t, old.Run(bg(), succeed))
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
					if err := g.ReconfigureGates(next); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	require.Zero(t, callsInFlight(g))
}

// The comments of Config and GroupConfig say about 900 bytes for Adaptive, and 0.5 kB for the first
// call with RefuseHopeless.
func TestMemoryOfOptionsOfAKey(t *testing.T) {
	bytes := func(c weir.Config) int {
		const keys = 1000
		g := weir.NewGroup[int]("g", weir.GroupConfig{Gate: c})
		before := heapInUse()
		for key := range keys {
			require.NoError(t, g.Get(key).Run(t.Context(), succeed))
		}
		after := heapInUse()
		runtime.KeepAlive(g)
		return (after - before) / keys
	}
	require.InDelta(t, 900, float64(bytes(weir.Config{Adaptive: true})-bytes(weir.Config{})), 100)
	require.InDelta(t, 500, float64(bytes(weir.Config{RefuseHopeless: true})-bytes(weir.Config{})), 100)
}

func TestMaxOpenBoundsTheGatesThatRefuse(t *testing.T) {
	c := weir.GroupConfig{MaxOpen: 0.3, Gate: weir.Config{Breaker: breaker.Config{MinCalls: 1}}}
	g := weir.NewGroup[int]("g", c)
	for key := range 10 {
		g.Get(key)
	}
	failAll := func() (refused int) {
		for _, gate := range g.All() {
			if errors.Is(gate.Run(t.Context(), func(context.Context) error { return errors.New("no route to host") }), breaker.ErrOpen) {
				refused++
			}
		}
		return refused
	}
	require.Zero(t, failAll())
	require.Equal(t, 3, failAll())
	c.MaxOpen = 0.5
	require.NoError(t, g.Reconfigure(c))
	require.Equal(t, 3, failAll())
	require.Equal(t, 5, failAll())
	c.MaxOpen = 2
	require.EqualError(t, g.Reconfigure(c), "breaker: MaxOpen is 2, must lie between 0 and 1")
	require.ErrorContains(t, weir.GroupConfig{MaxOpen: -1}.Validate(), "MaxOpen is -1")
}

func TestReconfigureOfAGroupKeepsMaxKeysAndMaxSeries(t *testing.T) {
	g := hosts(weir.GroupConfig{})
	for _, c := range []weir.GroupConfig{{MaxKeys: 99_999}, {MaxSeries: breaker.Off}} {
		c.Gate.Breaker.Force = breaker.ForcedOpen
		require.EqualError(t, g.Reconfigure(c), "weir: Reconfigure can change Gate, MaxOpen and ShowKeys; MaxKeys and MaxSeries must be as before")
		require.NoError(t, g.Get("a").Run(bg(), succeed), "nothing has changed")
	}
	c := weir.GroupConfig{Gate: weir.Config{Rate: limiter.Per(1, time.Hour), Burst: 1}, MaxKeys: 100_000, ShowKeys: true}
	require.NoError(t, g.Reconfigure(c))
	for range 3 {
		_ = g.Get("a").Run(bg(), succeed)
	}
	require.Equal(t, "a", g.Busiest(1)[0].Key)
}

// A call that waits continues with the new breaker of its key, also after a Reconfigure. If Forget
// comes while Reconfigure still wakes the call, the call may get its token before it is forgotten,
// and then ends with the old breaker, as a call in flight does.
func TestForgetAfterReconfigureMovesWaiters(t *testing.T) {
	for _, at := range []string{"waits again", "is woken"} {
		synctest.Test(t, func(t *testing.T) {
			c := weir.Config{Rate: limiter.PerMinute(1), Burst: 1, MaxWait: time.Minute}
			g := hosts(weir.GroupConfig{Gate: c})
			require.NoError(t, g.Get("a").Run(bg(), succeed))
			old := g.Get("a").Breaker()
			done := make(chan error)
			go func() { done <- g.Get("a").Run(bg(), succeed) }()
			synctest.Wait()
			began := time.Now()
			c.MaxConcurrent = 5
			require.NoError(t, g.ReconfigureGates(c))
			if at == "waits again" {
				synctest.Wait()
			}
			require.True(t, g.Forget("a"))
			require.NoError(t, <-done)
			require.Zero(t, time.Since(began))
			before, after := old.Totals().Successes, g.Get("a").Totals().Successes
			require.EqualValues(t, 2, before+after)
			if at == "waits again" {
				require.EqualValues(t, 1, before)
			}
		})
	}
}

// A call that waits through a gate that has left is moved to the gate of its key, and follows the
// config of the group.
func TestACallThatWaitsInAGateThatHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := hosts(weir.GroupConfig{Gate: weir.Config{MaxConcurrent: 1, MaxWait: time.Hour}})
		kept := g.Get("a")
		require.True(t, g.Forget("a"))
		permit, err := g.Get("a").Allow(bg())
		require.NoError(t, err)
		done := make(chan error)
		go func() { done <- kept.Run(bg(), succeed) }()
		synctest.Wait()
		began := time.Now()
		require.NoError(t, g.ReconfigureGates(weir.Config{}))
		require.NoError(t, <-done)
		require.Zero(t, time.Since(began))
		permit.Record(bg(), nil, breaker.Success)
	})
}

// Forget fills the bucket of a key also while there is no Rate.
func TestForgetWithoutARateFillsTheBucket(t *testing.T) {
	c := weir.Config{Rate: limiter.Per(1, time.Hour), Burst: 1}
	g := hosts(weir.GroupConfig{Gate: c})
	require.NoError(t, g.Get("a").Run(bg(), succeed))
	require.NoError(t, g.ReconfigureGates(weir.Config{}))
	require.True(t, g.Forget("a"))
	require.NoError(t, g.ReconfigureGates(c))
	require.NoError(t, g.Get("a").Run(bg(), succeed))
	require.ErrorIs(t, g.Get("a").Run(bg(), succeed), limiter.ErrLimited)
}

// panickingError is an error whose method panics when the outcome of a call is found.
type panickingError struct{}

func (panickingError) Error() string { return "down" }
func (panickingError) Is(error) bool { panic("Is") }

// A slot is released also if a method of the error of the call panics.
func TestASlotIsReleasedHoweverTheErrorBehaves(t *testing.T) {
	for kind, g := range everyGate() {
		if callsInFlight(g) < 0 {
			continue
		}
		require.Panics(t, func() { _ = g.Run(bg(), func(context.Context) error { return panickingError{} }) }, kind)
		require.Zero(t, callsInFlight(g), kind)
	}
}
