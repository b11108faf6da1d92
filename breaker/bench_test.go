package breaker_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/weir-go/weir/breaker"
)

func ok(context.Context) error { return nil }

func BenchmarkRunClosedSuccess(b *testing.B) {
	br := breaker.New("b", breaker.Config{})
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if br.Run(ctx, ok) != nil {
			b.Fatal("refused")
		}
	}
}

func BenchmarkRunClosedSuccessParallel(b *testing.B) {
	br := breaker.New("b", breaker.Config{})
	ctx := context.Background()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			_ = br.Run(ctx, ok)
		}
	})
}

func BenchmarkRunClosedFailure(b *testing.B) {
	br := breaker.New("b", breaker.Config{FailureRate: breaker.Off})
	ctx, errDown := context.Background(), errors.New("down")
	fail := func(context.Context) error { return errDown }
	b.ReportAllocs()
	for b.Loop() {
		if !errors.Is(br.Run(ctx, fail), errDown) {
			b.Fatal("refused")
		}
	}
}

func BenchmarkRunOpen(b *testing.B) {
	br := breaker.New("b", breaker.Config{MinCalls: 1, Cooldown: 1 << 50})
	ctx, errDown := context.Background(), errors.New("down")
	_ = br.Run(ctx, func(context.Context) error { return errDown })
	b.ReportAllocs()
	for b.Loop() {
		if br.Run(ctx, ok) == nil {
			b.Fatal("let through")
		}
	}
}

func BenchmarkAllowRecord(b *testing.B) {
	br := breaker.New("b", breaker.Config{})
	b.ReportAllocs()
	for b.Loop() {
		p, err := br.Allow()
		if err != nil || !p.Record(bg(), nil, breaker.Success) {
			b.Fatal("refused")
		}
	}
}

func BenchmarkRunClosedSuccessWithLatency(b *testing.B) {
	br := breaker.New("b", breaker.Config{SlowCall: time.Second, Latency: true})
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if br.Run(ctx, ok) != nil {
			b.Fatal("refused")
		}
	}
}
