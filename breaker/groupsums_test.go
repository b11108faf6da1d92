package breaker_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/internal/testenv"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/stat/read"
)

// groupMetrics returns the metrics of a group by name and all attribute values except the first.
func groupMetrics(s stat.Source) map[string]float64 {
	seen := map[string]float64{}
	for s, v := range s.Observe {
		key := strings.TrimPrefix(s.Instrument.Name, "weir.breaker.") + " " + strings.Join(s.Values[1:], " ")
		if _, twice := seen[key]; twice {
			panic("twice: " + key)
		}
		seen[key] = v
	}
	return seen
}

func TestGroupShowsItsFirstKeysAndTheSumOfTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := breaker.GroupConfig{Breaker: breaker.Config{MinCalls: 2, Cooldown: 5 * time.Second}, MaxKeys: 6, MaxSeries: 2}
		g := breaker.NewGroup[string]("g", c)
		empty := groupMetrics(g)
		require.Zero(t, empty["calls success _other"], "there from the start")
		require.Contains(t, empty, "calls success _other")
		for _, key := range []string{"a", "b", "c", "d"} {
			_ = g.Get(key).Run(bg(), succeed)
			_, _ = g.Get(key).Run(bg(), fail), g.Get(key).Run(bg(), fail)
		}
		_ = g.Get("e").Run(bg(), succeed)
		lines := groupMetrics(g)
		for key, want := range map[string]float64{
			"calls success a": 1, "calls failure a": 1, "calls refused a": 1, "state open a": 1, "state closed a": 0,
			"window.failure_ratio a": 0.5, "window.calls failure a": 1, "calls success b": 1,
			"calls success _other": 3, "calls failure _other": 2, "calls refused _other": 2, "transitions open _other": 2,
			"state open _other": 2, "state closed _other": 1, "state forced_closed _other": 0,
			"group.size ": 5, "group.evictions ": 0, "group.unguarded ": 0,
		} {
			require.Contains(t, lines, key)
			require.InDelta(t, want, lines[key], 0, key)
		}
		for key := range lines {
			require.Regexp(t, "( a| b| _other|^group.*)$", key, "no other key")
		}
		require.NotContains(t, lines, "window.calls failure _other", "no gauges")

		time.Sleep(time.Minute)
		later := groupMetrics(g)
		require.InDelta(t, 60, later["state_time closed _other"], 1e-9, "that of e")
		require.InDelta(t, 2*5, later["state_time open _other"], 1e-9)
		require.InDelta(t, 2*55, later["state_time half_open _other"], 1e-9)
		_, err := read.New(func(s *stat.Series) *stat.Series { return s }, g)
		require.NoError(t, err)
	})
}

// The test runs in a bubble, where no time passes: after a cooldown a breaker could be evicted, and
// another key would get its series.
func TestGroupHasABoundedNumberOfSeries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := breaker.NewGroup[int]("g", breaker.GroupConfig{Breaker: breaker.Config{MinCalls: 1}, MaxKeys: 1000, MaxSeries: 10})
		var series []*stat.Series
		for round := range 3 {
			for i := range 5000 {
				_ = g.Get(i).Run(bg(), []func(ctx) error{succeed, fail}[i%2])
			}
			seen := map[*stat.Series]bool{}
			for s := range g.Observe {
				seen[s] = true
			}
			one := 0
			for range breaker.New("one", breaker.Config{MinCalls: 1}).Observe {
				one++
			}
			require.Less(t, len(seen), 12*(one+3))
			if round > 0 {
				require.Subset(t, slices.Collect(maps.Keys(seen)), series, "the same each time")
			}
			series = slices.Collect(maps.Keys(seen))
		}
	})
}

// callManyKeys calls members of a group, and returns how many calls it made.
func callManyKeys(g *breaker.Group[int], seed uint64) (calls int64) {
	r := rand.New(rand.NewPCG(seed, 1))
	for range testenv.Repeat(20_000, 5_000) {
		if p, err := g.Get(int(r.ExpFloat64() * 100)).Allow(); err == nil {
			p.Record(bg(), nil, breaker.Outcome(r.IntN(3)))
		}
		calls++
	}
	return calls
}

// counterReadings are the values of counters at their last reading.
type counterReadings map[*stat.Series]float64

// read requires that no counter has fallen, and returns the sum of all calls.
func (last counterReadings) read(t *testing.T, g *breaker.Group[int]) (calls float64) {
	for s, v := range g.Observe {
		if s.Instrument.Kind != stat.Counter {
			continue
		}
		if v < last[s] && (s.Instrument != instrument.BreakerStateTime || s.Values[2] == "_other") {
			t.Errorf("%s %v fell from %v to %v", s.Instrument.Name, s.Values, last[s], v)
		}
		last[s] = v
		if s.Instrument == instrument.BreakerCalls || s.Instrument == instrument.BreakerLateResults {
			calls += v
		}
	}
	return calls
}

// The series of a key and the sums of the others never fall while keys come and go.
func TestGroupCountersOnlyGrow(t *testing.T) {
	g := breaker.NewGroup[int]("g", breaker.GroupConfig{Breaker: breaker.Config{Window: time.Millisecond, Buckets: 1, MinCalls: 3, Cooldown: breaker.Off}, MaxKeys: 50, MaxSeries: 5})
	var made atomic.Int64
	var wg sync.WaitGroup
	for worker := range uint64(4) {
		wg.Go(func() { made.Add(callManyKeys(g, worker)) })
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	last, rounds := counterReadings{}, 0
	for running := true; running; rounds++ {
		select {
		case <-done:
			running = false
		default:
			last.read(t, g)
		}
	}
	require.Greater(t, rounds, 10)
	require.Positive(t, g.Stats().Evictions)
	require.LessOrEqual(t, last.read(t, g), float64(made.Load()), "no call is in two sums")
	shown := 0
	for s := range g.Observe {
		if s.Instrument == instrument.BreakerSlowCalls {
			shown++
		}
	}
	require.LessOrEqual(t, shown, 6, "five keys and the others")
}
