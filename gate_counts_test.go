package weir_test

import (
	"context"
	"errors"
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

// outcomeCounts counts calls by how they ended for the caller.
type outcomeCounts struct{ succeeded, failed, panicked, open, limited atomic.Int64 }

// call makes the i-th call, which succeeds, fails or panics.
func (c *outcomeCounts) call(g *weir.Gate, i int) {
	defer func() {
		if recover() != nil {
			c.panicked.Add(1)
		}
	}()
	err := g.Run(bg(), func(context.Context) error {
		switch {
		case i%101 == 0:
			panic("boom")
		case i%3 == 0:
			return errDown
		}
		return nil
	})
	switch {
	case err == nil:
		c.succeeded.Add(1)
	case errors.Is(err, breaker.ErrOpen):
		c.open.Add(1)
	case errors.Is(err, limiter.ErrLimited):
		c.limited.Add(1)
	default:
		c.failed.Add(1)
	}
}

// Many goroutines make calls that succeed, fail and panic. Each call is counted exactly once.
func TestEveryCallHasOneOutcome(t *testing.T) {
	const callers, calls = 8, 5000
	g := weir.New("g", weir.Config{
		Rate: limiter.PerSecond(1e6), Burst: 1000,
		Breaker: breaker.Config{MinCalls: 5, Window: time.Millisecond, Cooldown: 100 * time.Microsecond},
	})
	var c outcomeCounts
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for i := range calls {
				c.call(g, i)
			}
		})
	}
	wg.Wait()
	made := c.succeeded.Load() + c.failed.Load() + c.panicked.Load()
	require.Equal(t, int64(callers*calls), made+c.open.Load()+c.limited.Load())
	total := g.Totals()
	recorded := total.Calls() + metricOf(g.Breaker(), "weir.breaker.late_results")
	require.Equal(t, made, recorded)
	require.Equal(t, c.open.Load(), total.Refused)
	require.Equal(t, c.limited.Load(), g.Admissions().Refused)
	require.Equal(t, recorded, g.Admissions().Allowed)
}

func TestObserveYieldsBreakerAndLimiterMetrics(t *testing.T) {
	g := weir.New("g", weir.Config{Rate: limiter.Per(1, time.Hour), Burst: 2})
	for range 3 {
		_ = g.Run(bg(), succeed)
	}
	seen := map[string]float64{}
	for s, v := range g.Observe {
		seen[s.Instrument.Name+" "+strings.Join(s.Values, " ")] = v
	}
	for name, want := range map[string]float64{
		"weir.breaker.calls g success ":     2,
		"weir.limiter.requests g allowed":   2,
		"weir.limiter.requests g refused":   1,
		"weir.limiter.requests g waited":    0,
		"weir.limiter.requests g cancelled": 0,
		"weir.limiter.tokens g allowed":     2,
		"weir.limiter.tokens g refused":     1,
		"weir.limiter.available g":          0,
		"weir.limiter.limit g":              2,
		"weir.limiter.waiting g":            0,
	} {
		got, there := seen[name]
		require.True(t, there, name)
		require.Equal(t, want, got, name)
	}
}

func TestCallsAllocateNothing(t *testing.T) {
	free := weir.New("g", weir.Config{Rate: limiter.PerSecond(1e9), Burst: 1 << 30})
	limited := weir.New("g", weir.Config{Rate: limiter.Per(1, time.Hour)})
	down := weir.New("g", weir.Config{Rate: limiter.PerSecond(1e9), Breaker: breaker.Config{MinCalls: 1, Cooldown: time.Hour}})
	_ = down.Run(bg(), fail)
	ctx := bg()
	value := func(context.Context) (int, error) { return 1, nil }
	instead := func(context.Context, error) (int, error) { return 2, nil }
	for name, f := range map[string]func(){
		"allowed":        func() { _ = free.Run(ctx, succeed) },
		"allowed, Do":    func() { _, _ = weir.Do(ctx, free, value) },
		"limited":        func() { _ = limited.Run(ctx, succeed) },
		"limited, DoOr":  func() { _, _ = weir.DoOr(ctx, limited, value, instead) },
		"open":           func() { _ = down.Run(ctx, succeed) },
		"open, Do":       func() { _, _ = weir.Do(ctx, down, value) },
		"what it counts": func() { _, _, _ = free.Latency(), free.Totals(), free.Admissions() },
	} {
		require.Zero(t, testing.AllocsPerRun(1000, f), name)
	}
}

func TestObserveYieldsWaitingCallsAndWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.New("g", weir.Config{Rate: limiter.PerSecond(1), Burst: 1, MaxWait: 3 * time.Second})
		ctx, leave := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 3 { // at once, after a second, after two
			wg.Go(func() { _ = g.Run(t.Context(), succeed) })
			synctest.Wait()
		}
		wg.Go(func() { _ = g.Run(ctx, succeed) })
		synctest.Wait()
		require.Equal(t, limiter.Stats{Allowed: 1, Waiting: 3}, g.Admissions())
		leave()
		wg.Wait()
		require.Equal(t, limiter.Stats{Allowed: 1, Waited: 2, Cancelled: 1}, g.Admissions())
		shown := 0
		for s, h := range g.Histograms {
			shown++
			require.Equal(t, instrument.LimiterWaitDuration, s.Instrument)
			require.EqualValues(t, 2, h.Count())
			require.InDelta(t, 3, h.Sum, 1e-6)
		}
		require.Equal(t, 1, shown)
	})
	for range weir.New("g", weir.Config{Rate: limiter.PerSecond(1)}).Histograms {
		t.Fatal("no call waits")
	}
}

// metricOf returns the value of the metric of b with that name.
func metricOf(b *breaker.Breaker, name string) (n int64) {
	for s, v := range b.Observe {
		if s.Instrument.Name == name {
			n = int64(v)
		}
	}
	return n
}
