package fleet_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/fleet/internal/redistest"
	"github.com/weir-go/weir/window"
)

func BenchmarkCallsRecord(b *testing.B) {
	c := newCalls(connect(b), "bench", fleet.CallsConfig{})
	b.ReportAllocs()
	for b.Loop() {
		c.Record(window.Success, 0)
	}
}

func BenchmarkCallsCounts(b *testing.B) {
	c := newCalls(connect(b), "bench", fleet.CallsConfig{})
	b.ReportAllocs()
	for b.Loop() {
		_ = c.Counts()
	}
}

// What 200 nodes with ten windows each cost Redis: docs/redis.md states it. An operation is ten
// seconds.
func BenchmarkCallsOfAFleet(b *testing.B) {
	const nodes, windows, span = 200, 10, 10 * time.Second
	for name, busy := range map[string]bool{"idle": false, "busy": true} {
		b.Run(name, func(b *testing.B) {
			s := redistest.Start(b)
			var count tripCounter
			var running sync.WaitGroup
			ctx, cancel := context.WithCancel(b.Context())
			for range nodes {
				client := newClient(b, s)
				client.AddHook(&count)
				link := connectTo(b, client, fleet.LinkConfig{Timeout: 5 * time.Second})
				var all []recorder
				for i := range windows {
					all = append(all, newCalls(link, fmt.Sprint("window", i), fleet.CallsConfig{Span: span}))
				}
				for _, c := range all {
					running.Go(func() { _ = c.Run(ctx) })
				}
				if busy {
					running.Go(func() { recordOften(ctx, all) })
				}
			}
			waitFor(span / 4)
			trips, scripts, cpu := count.trips.Load(), count.scripts.Load(), processorSeconds(b, s)
			began := time.Now()
			for b.Loop() {
				waitFor(span)
			}
			took := time.Since(began).Seconds()
			b.ReportMetric(float64(count.scripts.Load()-scripts)/took, "scripts/s")
			b.ReportMetric(float64(count.trips.Load()-trips)/took, "trips/s")
			b.ReportMetric(100*(processorSeconds(b, s)-cpu)/took, "%cpu")
			cancel()
			running.Wait()
		})
	}
}

// recordOften records ten calls per second in each window until ctx ends.
func recordOften(ctx context.Context, all []recorder) {
	for ; ctx.Err() == nil; waitFor(100 * ms) {
		for _, c := range all {
			c.Record(window.Success, ms)
		}
	}
}

// processorSeconds returns how long a server has used a processor.
func processorSeconds(t testing.TB, s *redistest.Server) float64 {
	var system, user float64
	_, after, _ := strings.Cut(s.Do("INFO", "cpu"), "used_cpu_sys:")
	_, err := fmt.Sscanf(after, "%f\r\nused_cpu_user:%f", &system, &user)
	require.NoError(t, err)
	return system + user
}
