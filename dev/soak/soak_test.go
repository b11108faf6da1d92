package main

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
)

func TestAShortRun(t *testing.T) {
	faults, report := soak(t.Context(), 2*time.Second, 1)
	require.Empty(t, faults, report)
	t.Log(report)
}

// The other tests show that wrong counts are found.

func newTestGate() (*gateUnderTest, *faults) {
	f := &faults{}
	return newGate(1, rand.New(rand.NewPCG(1, 1)), f), f
}

func TestALostCallIsFound(t *testing.T) {
	for name, forget := range map[string]func(h *gateUnderTest){
		"lost calls":    func(h *gateUnderTest) { h.ran.Add(1) },
		"lost refusals": func(h *gateUnderTest) { h.refusedOpen.Add(1) },
		"tokens":        func(h *gateUnderTest) { h.ran.Add(-1) },
	} {
		h, f := newTestGate()
		h.makeRequest(t.Context())
		h.checkTotals()
		require.Empty(t, f.list())
		forget(h)
		h.checkTotals()
		require.NotEmpty(t, f.list(), name)
		require.Contains(t, f.kinds, name)
	}
}

func TestALimitThatLetsTooMuchThroughIsFound(t *testing.T) {
	h, f := newTestGate()
	h.burst, h.rate = 0, 0
	h.makeRequest(t.Context())
	h.makeRequest(t.Context())
	h.audit()
	require.Equal(t, []string{"limit"}, f.kinds)

	f = &faults{}
	s := &windowUnderTest{name: "lax", limiter: limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Unlimited()}), limit: 3, span: time.Minute, began: time.Now()}
	for range 3 {
		s.makeRequest()
	}
	s.audit(f)
	require.Empty(t, f.list())
	s.makeRequest()
	s.audit(f)
	require.Equal(t, []string{"window"}, f.kinds)
}

// newTestFleet returns two nodes that never reach a Redis, which counts as started once.
func newTestFleet(t *testing.T) (*fleetUnderTest, *faults) {
	f := &fleetUnderTest{faults: &faults{}, began: time.Now()}
	f.client = redis.NewClient(&redis.Options{Network: "unix", Addr: "nowhere", ContextTimeoutEnabled: true, MaxRetries: -1, DialerRetries: 1})
	t.Cleanup(func() { _ = f.client.Close() })
	for i := range f.nodes {
		var err error
		f.nodes[i], err = newNode(f.client, "a node")
		require.NoError(t, err)
	}
	f.starts.Store(1)
	return f, f.faults
}

func TestAFleetThatAllowsTooMuchIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		starts int64
		lasts  time.Duration
		limit  int64 // a burst per start, the rate, and one
	}{
		"at once":                  {0, 0, 50 + 1},
		"after a time":             {0, 3 * time.Second, 50 + 3*500 + 1},
		"after Redis forgot twice": {2, 3 * time.Second, 3*50 + 3*500 + 1},
	} {
		fleets, faults := newTestFleet(t) // outside the bubble, because a client starts goroutines
		synctest.Test(t, func(t *testing.T) {
			fleets.began = time.Now()
			time.Sleep(c.lasts)
			fleets.starts.Add(c.starts)
			fleets.taken.Store(c.limit)
			fleets.audit()
			require.Empty(t, faults.list(), name)
			fleets.taken.Add(1)
			fleets.audit()
			require.Equal(t, []string{"limit"}, faults.kinds, name)
		})
	}
}

func TestACallThatAFleetCountsWronglyIsFound(t *testing.T) {
	fleets, faults := newTestFleet(t)
	succeed := func(context.Context) error { return nil }
	fleets.taken.Store(1)
	for _, n := range fleets.nodes {
		n.made.Add(1)
		require.NoError(t, n.breaker.Run(t.Context(), succeed))
	}
	fleets.audit()
	fleets.checkTotals()
	require.Empty(t, faults.list())

	last := fleets.nodes[len(fleets.nodes)-1]
	last.made.Add(1) // which the breaker has not counted
	fleets.audit()
	require.Empty(t, faults.list(), "it may still be running")
	fleets.checkTotals()
	require.Equal(t, []string{"lost calls"}, faults.kinds)

	for range 2 {
		require.NoError(t, last.breaker.Run(t.Context(), succeed))
	}
	fleets.audit()
	require.Equal(t, []string{"lost calls", "counts"}, faults.kinds)
}

func TestAFleetThatAllowsNothingIsFound(t *testing.T) {
	fleets, faults := newTestFleet(t)
	fleets.asked.Store(1000)
	fleets.checkTotals()
	require.Empty(t, faults.list())
	fleets.asked.Add(1)
	fleets.checkTotals()
	require.Equal(t, []string{"fleet"}, faults.kinds)
}

// fallingCounter is a counter whose value decreases.
type fallingCounter struct {
	series *stat.Series
	value  float64
}

func (b *fallingCounter) Observe(yield func(*stat.Series, float64) bool) {
	b.value--
	yield(b.series, 100+b.value)
}

func TestACounterThatGoesBackIsFound(t *testing.T) {
	counter := &stat.Instrument{Name: "soak.back", Kind: stat.Counter, Help: "Goes back.", Attrs: []string{"soak.name"}}
	f := &faults{}
	o, err := newObservers(f, &fallingCounter{series: counter.Series("l")})
	require.NoError(t, err)
	defer o.page.Close()
	o.scrape()
	require.Empty(t, f.list())
	o.scrape()
	require.Equal(t, []string{"counter"}, f.kinds)
	require.EqualValues(t, 2, o.scrapes.Load())
	o.collect(t.Context())
	require.EqualValues(t, 1, o.collections.Load())
}

func TestGrowthIsFound(t *testing.T) {
	for name, values := range map[string]func(i int) float64{
		"memory": func(i int) float64 { return float64(5 * i) },
		"":       func(i int) float64 { return 100 * float64(i%2) }, // varies
	} {
		f, g := &faults{}, growth{}
		for i := range 20 {
			g.hours = append(g.hours, float64(i)/60)
			g.heap, g.goroutines = append(g.heap, values(i)), append(g.goroutines, 10)
		}
		g.check(f)
		if name == "" {
			require.Empty(t, f.list())
			continue
		}
		require.Equal(t, []string{name}, f.kinds)
	}
	g := growth{began: time.Now()}
	require.Equal(t, "not sampled", g.String())
	g.sample()
	require.Contains(t, g.String(), "goroutines")
}
