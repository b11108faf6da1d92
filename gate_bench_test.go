package weir_test

import (
	"context"
	"testing"

	"github.com/weir-go/weir"
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
	g := weir.New("g", weir.Config{Rate: limiter.PerHour(1)})
	ctx := context.Background()
	_ = g.Run(ctx, succeed)
	b.ReportAllocs()
	for b.Loop() {
		if g.Run(ctx, succeed) == nil {
			b.Fatal("let through")
		}
	}
}
