package breaker_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/internal/testenv"
	"github.com/weir-go/weir/stat"
)

// counterChecker reads a group repeatedly, and fails the test if a counter falls, or grows by more
// than is possible.
type counterChecker struct {
	last map[*stat.Series]float64
	at   time.Time
}

// read returns the metrics that the group shows, by name and values. calls is the number of calls
// since the last reading, and members is the largest number of members.
func (m *counterChecker) read(t *testing.T, g *breaker.Group[string], calls, members float64) map[string]float64 {
	t.Helper()
	if m.last == nil {
		m.last = map[*stat.Series]float64{}
	}
	elapsed, seen := time.Since(m.at).Seconds(), map[*stat.Series]float64{}
	for s, v := range g.Observe {
		if s.Instrument.Kind != stat.Counter {
			continue
		}
		old, there := m.last[s]
		seen[s] = v
		if !there {
			continue
		}
		require.GreaterOrEqual(t, v, old, "%s %v", s.Instrument.Name, s.Values)
		switch s.Instrument {
		case instrument.BreakerStateTime:
			require.LessOrEqual(t, v-old, elapsed*members+1e-6, "%v", s.Values)
		case instrument.BreakerCalls:
			require.LessOrEqual(t, v-old, calls, "%v", s.Values)
		}
	}
	m.last, m.at = seen, time.Now()
	return groupMetrics(g)
}

// The first call of a key that has no room raises each counter by at most that one call.
func TestGroupCountsNoTimeOfUnguardedKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := breaker.NewGroup[string]("g", breaker.GroupConfig{MaxKeys: 1, MaxSeries: breaker.Off, Breaker: breaker.Config{MinCalls: 1}})
		var m counterChecker
		_ = g.Get("a").Run(bg(), succeed)
		m.read(t, g, 1, 1)
		time.Sleep(10 * 24 * time.Hour)
		m.read(t, g, 0, 1)
		_ = g.Get("a").Run(bg(), fail)
		_ = g.Get("b").Run(bg(), succeed)
		time.Sleep(15 * time.Second)
		lines := m.read(t, g, 2, 1)
		require.Zero(t, lines["state forced_closed _other"])
		require.Zero(t, lines["state_time forced_closed _other"])
		require.InDelta(t, 2, lines["calls success _other"], 0)
		require.InDelta(t, 1, lines["group.unguarded "], 0)
	})
}

// The time while a key is forgotten counts for no state.
func TestGroupCountsNoTimeOfAKeyThatWasForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := breaker.NewGroup[string]("g", breaker.GroupConfig{MaxKeys: 2, MaxSeries: breaker.Off})
		var m counterChecker
		_ = g.Get("a").Run(bg(), succeed)
		m.read(t, g, 1, 2)
		time.Sleep(time.Minute)
		evictAll(g, time.Now())
		for range 5 {
			time.Sleep(time.Hour)
			m.read(t, g, 0, 2)
		}
		_ = g.Get("a").Run(bg(), succeed)
		time.Sleep(15 * time.Second)
		lines := m.read(t, g, 1, 2)
		require.InDelta(t, 2, lines["state closed _other"], 0)
		require.InDelta(t, 2, lines["calls success _other"], 0)
		require.InDelta(t, 60+2*(5*3600+15), lines["state_time closed _other"], 1e-3, "of a before it was evicted, and of two members since")
	})
}

// Whatever the keys do, no counter falls or jumps, and each call is in the sum of all keys and in
// their histogram.
func TestGroupShowsEveryCallOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := breaker.NewGroup[string]("g", breaker.GroupConfig{MaxKeys: 20, MaxSeries: breaker.Off, Breaker: breaker.Config{
			Latency: true, Window: time.Second, MinCalls: 3, Cooldown: time.Second,
		}})
		r := rand.New(rand.NewPCG(3, 4))
		var m counterChecker
		made, refused := 0.0, 0.0
		for range testenv.Repeat(400, 150) {
			calls := float64(r.IntN(30))
			for range int(calls) {
				ran := false
				_ = g.Get(fmt.Sprint(int(r.ExpFloat64()*15))).Run(bg(), func(ctx) error { ran = true; return []error{nil, nil, errDown}[r.IntN(3)] })
				if made++; !ran {
					refused++
				}
			}
			lines, sum := m.read(t, g, calls, 20), 0.0
			for line, v := range lines {
				if strings.HasPrefix(line, "calls ") {
					sum += v
				}
			}
			require.InDelta(t, made, sum, 0)
			times := 0.0
			for _, h := range g.Histograms {
				times += float64(h.Count())
			}
			require.InDelta(t, made-refused, times, 0)
			time.Sleep(time.Duration(r.IntN(1000)) * time.Millisecond)
		}
		require.Greater(t, g.Stats().Evictions, int64(30))
		require.Positive(t, g.Stats().Unguarded)
		require.Positive(t, refused)
	})
}

// Several observers run while members are added and evicted, for the race detector.
func TestGroupIsObservedBySeveralAtOnce(t *testing.T) {
	g := breaker.NewGroup[string]("g", breaker.GroupConfig{MaxKeys: 10, MaxSeries: 3, Breaker: breaker.Config{
		Latency: true, Window: time.Millisecond, Buckets: 1, MinCalls: 5,
	}})
	var wg sync.WaitGroup
	for worker := range 2 {
		wg.Go(func() {
			for i := range 3000 {
				_ = g.Get(fmt.Sprint((i*7+worker)%25)).Run(bg(), succeed)
			}
		})
		wg.Go(func() {
			last := map[*stat.Series]float64{}
			for range 200 {
				for range g.Histograms {
				}
				for s, v := range g.Observe {
					if s.Instrument.Kind != stat.Counter {
						continue
					}
					if v < last[s] {
						t.Errorf("%s %v fell from %v to %v", s.Instrument.Name, s.Values, last[s], v)
					}
					last[s] = v
				}
			}
		})
	}
	wg.Wait()
}

// Sums of times differ by rounding when members are evicted, because the order of the additions
// changes. A counter never falls.
func TestGroupShowsNoCounterThatFallsByRounding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := rand.New(rand.NewPCG(1, 2))
		g := breaker.NewGroup[string]("g", breaker.GroupConfig{
			MaxKeys: 20, MaxSeries: breaker.Off, Breaker: breaker.Config{Window: time.Second},
		})
		var m counterChecker
		for range testenv.Repeat(2000, 700) {
			time.Sleep(time.Duration(w.Int64N(int64(3 * time.Second))))
			b := g.Get(fmt.Sprint(w.IntN(60)))
			if w.IntN(4) == 0 {
				b.OpenFor(time.Duration(w.Int64N(int64(time.Second))))
				time.Sleep(time.Second)
			}
			for range 3 { // enough probes to close the breaker
				_ = b.Run(bg(), succeed)
			}
			m.read(t, g, 3, 20)
		}
		require.Positive(t, g.Stats().Evictions)
	})
}

// A breaker that is forced as all of its group are may be evicted, and is counted in its state.
func TestGroupEvictsAForcedBreakerInItsState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := breaker.NewGroup[string]("g", breaker.GroupConfig{
			MaxKeys: 1, MaxSeries: breaker.Off, Breaker: breaker.Config{Force: breaker.ForcedOpen},
		})
		var m counterChecker
		g.Get("a")
		time.Sleep(time.Minute)
		m.read(t, g, 0, 1)
		g.Get("b")
		g.Get("b")
		require.EqualValues(t, 1, g.Stats().Evictions)
		m.read(t, g, 0, 1)
	})
}

// The sum of a group's histogram does not fall by rounding either.
func TestGroupShowsNoHistogramThatFallsByRounding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := rand.New(rand.NewPCG(1, 2))
		g := breaker.NewGroup[string]("g", breaker.GroupConfig{
			MaxKeys: 20, MaxSeries: breaker.Off, Breaker: breaker.Config{Window: time.Second, Latency: true},
		})
		last := 0.0
		look := func() {
			for _, h := range g.Histograms {
				require.GreaterOrEqual(t, h.Sum, last)
				last = h.Sum
			}
		}
		for range testenv.Repeat(2000, 700) {
			look()
			b := g.Get(fmt.Sprint(w.IntN(60))) // the key may take the place of another key
			look()
			_ = b.Run(bg(), func(ctx) error {
				time.Sleep(time.Duration(w.Int64N(int64(time.Second))))
				return nil
			})
		}
		require.Positive(t, g.Stats().Evictions)
	})
}

// The times of a member that was evicted while its group timed no calls are not lost.
func TestGroupKeepsItsHistogramWhileItTimesNothing(t *testing.T) {
	g := newEvictableGroup(2, breaker.Config{Latency: true})
	makeKeyCall(t, g, t0, "a", breaker.Success)
	require.NoError(t, g.ReconfigureAt(t0, breaker.Config{}))
	evictAll(g, after(time.Minute))
	require.NoError(t, g.ReconfigureAt(after(time.Minute), breaker.Config{Latency: true}))
	count := int64(0)
	for _, h := range g.Histograms {
		count += h.Count()
	}
	require.EqualValues(t, 1, count)
}
