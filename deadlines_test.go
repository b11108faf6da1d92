package weir_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
)

// Callers whose deadlines are too short do not open the breaker of a gate that they share with
// others.
func TestAGateStaysClosedForCallersInAHurry(t *testing.T) {
	for name, c := range map[string]weir.Config{
		"breaker":        {},
		"limiter":        {Rate: limiter.PerSecond(1000)},
		"waits":          {Rate: limiter.PerSecond(1000), MaxWait: time.Second},
		"max concurrent": {MaxConcurrent: 1000},
		"slow calls":     {Breaker: breaker.Config{SlowCall: time.Second, Latency: true}},
	} {
		gates := map[string]func() *weir.Gate{
			"gate":         func() *weir.Gate { return weir.New("service", c) },
			"group member": func() *weir.Gate { return weir.NewGroup[string]("service", weir.GroupConfig{Gate: c}).Get("k") },
		}
		for kind, gate := range gates {
			t.Run(name+", "+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { testShortDeadlines(t, gate()) })
			})
		}
	}
}

func testShortDeadlines(t *testing.T, g *weir.Gate) {
	var group sync.WaitGroup
	defer group.Wait()
	var bad atomic.Int64
	for i := range 1500 {
		group.Go(func() {
			allowed := 11 * time.Millisecond
			if i%3 == 0 {
				allowed = time.Second
			}
			ctx, cancel := context.WithTimeout(t.Context(), allowed)
			defer cancel()
			err := g.Run(ctx, func(ctx context.Context) error {
				select {
				case <-time.After(50 * time.Millisecond):
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			})
			if i%3 == 0 && err != nil {
				bad.Add(1)
			}
		})
		time.Sleep(10 * time.Millisecond)
	}
	group.Wait()
	require.Zero(t, bad.Load())
	total := g.Breaker().Totals()
	require.Equal(t, int64(500), total.Successes)
	require.Greater(t, total.Ignored, int64(990))
}
