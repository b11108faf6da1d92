package dashboard

import (
	"context"
	"fmt"
	"testing"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/stat"
)

// BenchmarkSample samples breakers that all had calls since the last sample, and encodes the
// changes.
func BenchmarkSample(b *testing.B) {
	for _, n := range []int{10, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			breakers := make([]*breaker.Breaker, n)
			sources := make([]stat.Source, n)
			for i := range breakers {
				breakers[i] = breaker.New(fmt.Sprintf("service-%04d", i), breaker.Config{})
				sources[i] = breakers[i]
			}
			s, err := newSampler(Config{}.orDefault(), sources)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				for _, one := range breakers {
					_ = one.Run(b.Context(), func(context.Context) error { return nil })
				}
				s.mu.Lock()
				s.sampling = true
				s.mu.Unlock()
				b.StartTimer()
				s.sample()
			}
		})
	}
}

// BenchmarkSnapshot encodes a snapshot of idle breakers.
func BenchmarkSnapshot(b *testing.B) {
	sources := make([]stat.Source, 1000)
	for i := range sources {
		sources[i] = breaker.New(fmt.Sprintf("service-%04d", i), breaker.Config{})
	}
	s, err := newSampler(Config{}.orDefault(), sources)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := s.latest(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		s.snapshotJSON = nil
		_, content := s.snapshot()
		b.ReportMetric(float64(len(content)), "bytes")
	}
}
