package producer_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/exporters/otelmetric/producer"
	"github.com/weir-go/weir/stat"
)

func BenchmarkProduce(b *testing.B) {
	for _, n := range []int{10, 1_000} {
		for _, latency := range []bool{false, true} {
			b.Run(fmt.Sprintf("breakers=%d/latency=%v", n, latency), func(b *testing.B) {
				p, err := producer.New(producer.Config{}, busyBreakers(n, breaker.Config{Latency: latency})...)
				require.NoError(b, err)
				b.ReportAllocs()
				for b.Loop() {
					_, _ = p.Produce(b.Context())
				}
			})
		}
	}
}

// busyBreakers returns breakers with calls of many durations.
func busyBreakers(n int, c breaker.Config) []stat.Source {
	sources := make([]stat.Source, n)
	for k := range sources {
		sources[k] = breaker.New(fmt.Sprintf("breaker-%d", k), c)
	}
	for round := range 40 {
		permits := make([]breaker.Permit, n)
		for k := range sources {
			permits[k], _ = sources[k].(*breaker.Breaker).Allow()
		}
		for began := time.Now(); time.Since(began) < time.Microsecond<<(round%16); { // up to 33 ms
		}
		for k := range permits {
			permits[k].Record(context.Background(), nil, breaker.Success)
		}
	}
	return sources
}
