package weir_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
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
		require.Equal(t, limiter.Stats{Allowed: 5, Refused: 2}, g.Admissions())
		require.Equal(t, g.Admissions(), kept.Admissions())
	})
}

func TestCallsWaitPerKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := hosts(weir.GroupConfig{Gate: weir.Config{Rate: limiter.PerSecond(1), Burst: 1, MaxWait: 3 * time.Second}})
		began := time.Now()
		var wg sync.WaitGroup
		for _, key := range []string{"a", "a", "a", "b"} {
			wg.Go(func() { _ = g.Get(key).Run(t.Context(), succeed) })
		}
		wg.Wait()
		require.Equal(t, 2*time.Second, time.Since(began))
		require.Equal(t, limiter.Stats{Allowed: 2, Waited: 2}, g.Admissions())

		g.Get("b").Hold(10 * time.Second)
		require.ErrorIs(t, g.Get("b").Run(t.Context(), succeed), limiter.ErrLimited, "the wait would be longer than MaxWait")
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

// A flood of keys takes bounded memory and evicts no key in use. Keys without room share one limit.
func TestFloodOfKeysIsBounded(t *testing.T) {
	g := hosts(weir.GroupConfig{MaxKeys: 100, MaxSeries: 5, Gate: weir.Config{
		Rate: limiter.Per(1, time.Hour), Burst: 1, Breaker: breaker.Config{ConsecutiveFailures: 1, Cooldown: time.Hour},
	}})
	require.ErrorIs(t, g.Get("bad").Run(t.Context(), fail), errDown)
	for i := range 10_000 {
		_ = g.Get(fmt.Sprint("flood", i)).Run(t.Context(), fail)
	}
	require.LessOrEqual(t, g.Len(), 100)
	require.ErrorIs(t, g.Get("bad").Run(t.Context(), succeed), breaker.ErrOpen, "the key is not evicted")
	require.LessOrEqual(t, g.Admissions().Allowed, int64(102))
	lines, keys := 0, 0.0
	for s, v := range g.Observe {
		lines++
		if s.Instrument == instrument.LimiterKeys {
			keys = v
		}
		require.False(t, strings.HasPrefix(s.Values[0], "flood"))
	}
	require.LessOrEqual(t, lines, 400)
	require.InDelta(t, 100, keys, 1)
}

func TestGroupIsASource(t *testing.T) {
	g := hosts(weir.GroupConfig{Gate: weir.Config{Rate: limiter.PerSecond(2), Burst: 10, Breaker: breaker.Config{Latency: true}}})
	require.NoError(t, g.Get("a").Run(t.Context(), succeed))
	seen := map[string]float64{}
	for s, v := range g.Observe {
		seen[s.Instrument.Name+" "+strings.Join(s.Values, ",")] = v
	}
	for key, want := range map[string]float64{
		"weir.breaker.calls hosts,success,a": 1, "weir.limiter.requests hosts,allowed": 1, "weir.limiter.tokens hosts,allowed": 1,
		"weir.limiter.limit hosts": 10, "weir.limiter.period hosts": 5, "weir.limiter.group.size hosts": 1, "weir.limiter.evictions hosts": 0,
	} {
		require.Contains(t, seen, key)
		require.InDelta(t, want, seen[key], 0, key)
	}
	require.NotContains(t, seen, "weir.limiter.available hosts")
	calls := int64(0)
	for _, h := range g.Histograms {
		calls += h.Count()
	}
	require.EqualValues(t, 1, calls)
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

func TestGroupHistogramHasWaitsOfAllKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := hosts(weir.GroupConfig{Gate: weir.Config{Rate: limiter.PerSecond(1), Burst: 1, MaxWait: time.Minute}})
		for _, key := range []string{"a", "a", "b", "b"} {
			// the second call of each key waits a second
			require.NoError(t, g.Get(key).Run(t.Context(), succeed))
		}
		shown := 0
		for s, h := range g.Histograms {
			shown++
			require.Equal(t, instrument.LimiterWaitDuration, s.Instrument)
			require.EqualValues(t, 2, h.Count())
			require.InDelta(t, 2, h.Sum, 1e-6)
		}
		require.Equal(t, 1, shown)
	})
}

func TestAllowAndRecord(t *testing.T) {
	g := weir.New("g", weir.Config{Rate: limiter.Per(1, time.Hour), Burst: 2, Breaker: breaker.Config{ConsecutiveFailures: 1}})
	ctx, cancel := context.WithCancel(t.Context())
	permit, err := g.Allow(ctx)
	require.NoError(t, err)
	require.True(t, permit.Done(ctx, errDown))
	_, err = g.Allow(ctx)
	require.ErrorIs(t, err, breaker.ErrOpen)
	require.EqualValues(t, 1, g.Admissions().Allowed, "an open breaker spends no token")
	cancel()
	_, err = g.Allow(ctx)
	require.Equal(t, context.Canceled, err)
}

func TestAllowOverTheLimitReturnsNoPermit(t *testing.T) {
	g := weir.New("g", weir.Config{Rate: limiter.Per(1, time.Hour), Burst: 1})
	permit, err := g.Allow(t.Context())
	require.NoError(t, err)
	require.True(t, permit.Record(breaker.Success))
	permit, err = g.Allow(t.Context())
	require.ErrorIs(t, err, limiter.ErrLimited)
	require.False(t, permit.Record(breaker.Success))
	require.EqualValues(t, 1, g.Totals().Successes)
}

func TestHoldRefusesCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.New("g", withExactHold(weir.Config{Rate: limiter.PerSecond(100)}))
		g.Hold(time.Minute)
		err := g.Run(t.Context(), succeed)
		require.ErrorIs(t, err, limiter.ErrLimited)
		require.Equal(t, time.Minute, weir.RetryAfter(err))
		time.Sleep(time.Minute)
		require.NoError(t, g.Run(t.Context(), succeed))
	})
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

// A gate that is kept behaves as one from Get does, even if its key was evicted or the group
// reconfigured meanwhile.
func TestKeptGateFollowsItsKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := hosts(weir.GroupConfig{MaxKeys: 2, MaxSeries: breaker.Off, Gate: weir.Config{Breaker: breaker.Config{MinCalls: 9}}})
		kept := g.Get("a")
		require.NoError(t, kept.Run(t.Context(), succeed))
		time.Sleep(time.Minute)
		for i := range 4 {
			g.Get(fmt.Sprint("other", i))
		}
		values, _ := readMetrics(g)
		require.InDelta(t, 3, values["weir.breaker.group.evictions"], 0)
		require.ErrorContains(t, g.Reconfigure(weir.Config{Breaker: breaker.Config{MinCalls: -7}}), "MinCalls is -7")
		require.NoError(t, g.Reconfigure(weir.Config{Breaker: breaker.Config{MinCalls: 3}}))
		for _, gate := range []*weir.Gate{kept, g.Get("a"), kept} {
			require.ErrorIs(t, gate.Run(t.Context(), fail), errDown)
		}
		require.True(t, kept.Tripped())
		require.True(t, g.Get("a").Tripped())
		require.ErrorIs(t, kept.Run(t.Context(), succeed), breaker.ErrOpen)
		require.EqualValues(t, 3, kept.Totals().Failures)
		values, _ = readMetrics(g)
		require.Zero(t, values["weir.breaker.group.unguarded"])
	})
}

// A hold that is evicted is counted, whatever limits the group has.
func TestEvictedHoldsAreCounted(t *testing.T) {
	for name, c := range map[string]weir.Config{
		"no limits": {}, "a rate": {Rate: limiter.PerSecond(1)}, "a bound on calls in flight": {MaxConcurrent: 1},
	} {
		t.Run(name, func(t *testing.T) {
			g := hosts(weir.GroupConfig{Gate: c, MaxKeys: 4})
			for i := range 10 {
				g.Get(fmt.Sprint(i)).Hold(time.Hour)
			}
			noRoom := 0.0
			for s, v := range g.Observe {
				if s.Instrument == instrument.LimiterNoRoom {
					noRoom += v
				}
			}
			require.InDelta(t, 6, noRoom, 0)
		})
	}
}
