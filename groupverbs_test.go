package weir_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
)

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

// A gate that is kept obeys a later Reconfigure of its group.
func TestGroupReconfigureChangesPresentAndFutureGates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := hosts(weir.GroupConfig{Gate: weir.Config{Rate: limiter.PerSecond(1), Burst: 1}})
		kept := g.Get("kept")
		require.NoError(t, kept.Run(bg(), succeed))
		require.ErrorIs(t, kept.Run(bg(), succeed), limiter.ErrLimited)
		require.NoError(t, g.Reconfigure(weir.Config{
			Rate: limiter.PerSecond(10), Burst: 5, MaxWait: time.Minute, Breaker: breaker.Config{ConsecutiveFailures: 2},
		}))
		for _, gate := range []*weir.Gate{kept, g.Get("late")} {
			for range 20 {
				require.NoError(t, gate.Run(bg(), succeed), "the call waits")
			}
			for range 2 {
				require.ErrorIs(t, gate.Run(bg(), fail), errDown)
			}
			require.ErrorIs(t, gate.Run(bg(), succeed), breaker.ErrOpen)
		}
		require.Positive(t, g.Admissions().Waited)
		waits := int64(0)
		for s, h := range g.Histograms {
			if s.Instrument.Name == "weir.limiter.wait.duration" {
				waits = h.Count()
			}
		}
		require.Equal(t, g.Admissions().Waited, waits)
	})
}

func TestGroupReconfigureChangesNothingOnError(t *testing.T) {
	limited := hosts(weir.GroupConfig{Gate: weir.Config{Rate: limiter.Per(1, time.Hour), Burst: 3}})
	strict := breaker.Config{ConsecutiveFailures: 1}
	for i, c := range []struct {
		with weir.Config
		want string
	}{
		{weir.Config{Rate: limiter.PerSecond(5), MaxWait: -1, Breaker: strict}, "weir: MaxWait is -1ns, must be at least 0"},
		{weir.Config{Rate: limiter.PerSecond(-5), Breaker: strict}, "must be"},
		{weir.Config{MaxConcurrent: -1, Breaker: strict}, "weir: MaxConcurrent is -1"},
	} {
		require.ErrorContains(t, limited.Reconfigure(c.with), c.want)
		gate := limited.Get(fmt.Sprint(i))
		require.ErrorIs(t, gate.Run(bg(), fail), errDown)
		require.NoError(t, gate.Run(bg(), succeed))
		require.NoError(t, gate.Run(bg(), succeed))
		require.ErrorIs(t, gate.Run(bg(), succeed), limiter.ErrLimited)
	}
	require.NoError(t, limited.Reconfigure(weir.Config{Rate: limiter.Unlimited()}))
	for range 100 {
		require.NoError(t, limited.Get("a").Run(bg(), succeed))
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
	require.NoError(t, kept.Run(bg(), succeed))
	require.NotSame(t, kept, g.Get("a"))
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

// A tenant that no longer exists is removed at once.
func ExampleGroup_Forget() {
	tenants := weir.NewGroup[string]("tenants", weir.GroupConfig{Gate: weir.Config{Breaker: breaker.Config{ConsecutiveFailures: 1}}})
	_ = tenants.Get("acme").Run(context.Background(), func(context.Context) error { return errDown })
	for tenant, gate := range tenants.All() {
		fmt.Println(tenant, gate.Breaker().State())
	}
	fmt.Println(tenants.Forget("acme"), tenants.Len())
	// Output:
	// acme open
	// true 0
}

// Two calls wait when their key is forgotten. One gets the token of the new bucket, and the other
// is refused when the key's new breaker opens.
func TestWaitingCallIsRefusedByTheNextBreakerOfItsKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := hosts(weir.GroupConfig{Gate: weir.Config{Rate: limiter.Per(1, time.Hour), Burst: 1, MaxWait: 3 * time.Hour}})
		require.NoError(t, g.Get("a").Run(bg(), succeed))
		began := time.Now()
		time.AfterFunc(time.Minute, func() { g.Forget("a") })
		time.AfterFunc(2*time.Minute, func() { g.Get("a").Breaker().OpenFor(time.Hour) })
		var errs [2]error
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() { errs[i] = g.Get("a").Run(bg(), succeed) })
		}
		wg.Wait()
		require.Equal(t, 2*time.Minute, time.Since(began))
		require.ErrorIs(t, errors.Join(errs[:]...), breaker.ErrOpen)
		require.True(t, errs[0] == nil || errs[1] == nil)
		require.Equal(t, limiter.Stats{Allowed: 1, Waited: 1}, g.Admissions())
	})
}

// A call that waits when its key is forgotten continues with the key's new limit.
func TestWaitingCallContinuesWhenItsKeyIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := hosts(weir.GroupConfig{Gate: weir.Config{Rate: limiter.Per(1, time.Hour), Burst: 1, MaxWait: 3 * time.Hour}})
		require.NoError(t, g.Get("a").Run(bg(), succeed))
		began := time.Now()
		time.AfterFunc(time.Minute, func() { g.Forget("a") })
		require.NoError(t, g.Get("a").Run(bg(), succeed))
		require.Equal(t, time.Minute, time.Since(began))
		require.Equal(t, limiter.Stats{Allowed: 1, Waited: 1}, g.Admissions())
	})
}
