package weir_test

import (
	"context"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
)

func succeed(context.Context) error { return nil }

func BenchmarkGateRun(b *testing.B) {
	g := weir.New("g", weir.Config{Rate: limiter.PerSecond(2e9), Burst: 1 << 30})
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if g.Run(ctx, succeed) != nil {
			b.Fatal("refused")
		}
	}
}

func BenchmarkGateRunLimited(b *testing.B) {
	g := weir.New("g", weir.Config{Rate: limiter.Per(1, time.Hour)})
	ctx := context.Background()
	_ = g.Run(ctx, succeed)
	b.ReportAllocs()
	for b.Loop() {
		if g.Run(ctx, succeed) == nil {
			b.Fatal("let through")
		}
	}
}

// BenchmarkGateInFlight compares gates with a bound on calls in flight with one without, and with a
// reading of the clock.
func BenchmarkGateInFlight(b *testing.B) {
	for _, c := range []struct {
		name   string
		config weir.Config
	}{
		{"none", weir.Config{}},
		{"fixed", weir.Config{MaxConcurrent: 1000}},
		{"adaptive", weir.Config{Adaptive: true}},
		{"rate", weir.Config{Rate: limiter.PerSecond(2e9), Burst: 1 << 30}},
		{"rate-adaptive", weir.Config{Rate: limiter.PerSecond(2e9), Burst: 1 << 30, Adaptive: true}},
	} {
		g, ctx := weir.New("g", c.config), context.Background()
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if g.Run(ctx, succeed) != nil {
					b.Fatal("refused")
				}
			}
		})
		b.Run(c.name+"/parallel", func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					if g.Run(ctx, succeed) != nil {
						b.Error("refused")
					}
				}
			})
		})
	}
	b.Run("time.Since", func(b *testing.B) {
		epoch := time.Now()
		for b.Loop() {
			_ = time.Since(epoch)
		}
	})
}

// BenchmarkGateHopeless compares a gate that refuses hopeless calls with one that keeps a histogram
// of latencies and one that does neither. All calls have a deadline.
func BenchmarkGateHopeless(b *testing.B) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	for _, c := range []struct {
		name   string
		config weir.Config
	}{
		{"none", weir.Config{}},
		{"latency", weir.Config{Breaker: breaker.Config{Latency: true}}},
		{"hopeless", weir.Config{RefuseHopeless: true}},
		{"slots", weir.Config{MaxConcurrent: 1000}},
		{"slots-hopeless", weir.Config{MaxConcurrent: 1000, RefuseHopeless: true}},
	} {
		g := weir.New("g", c.config)
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if g.Run(ctx, succeed) != nil {
					b.Fatal("refused")
				}
			}
		})
	}
	g := weir.New("g", weir.Config{RefuseHopeless: true})
	for range 100 {
		permit, _ := g.Allow(ctx)
		<-time.After(2 * time.Millisecond) // a benchmark runs in real time
		permit.Record(breaker.Success)
	}
	b.Run("refused", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = g.Run(deadlineSoon{ctx}, succeed)
		}
	})
}

// deadlineSoon is a context whose deadline is always 1 ms away.
type deadlineSoon struct{ context.Context }

func (deadlineSoon) Deadline() (time.Time, bool) { return time.Now().Add(time.Millisecond), true }
