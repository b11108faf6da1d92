package producer_test

import (
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
				p, err := producer.New(busyBreakers(n, breaker.Config{Latency: latency})...)
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
	sources, now := make([]stat.Source, n), time.Now()
	for k := range sources {
		b := breaker.NewAt(fmt.Sprintf("breaker-%d", k), c, now)
		for n := range 40 {
			if permit, err := b.AllowAt(now); err == nil {
				permit.RecordAt(now.Add(time.Duration(n*n)*time.Millisecond), breaker.Success)
			}
		}
		sources[k] = b
	}
	return sources
}
