package prom_test

import (
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/exporters/prom"
	"github.com/weir-go/weir/stat"
)

var sizes = []int{10, 1_000, 10_000}

// BenchmarkCollect is our part of a scrape: 37 series a breaker.
func BenchmarkCollect(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprintf("breakers=%d", n), func(b *testing.B) {
			c := prom.NewCollector(breakers(n)...)
			ch := make(chan prometheus.Metric, 1_000)
			go func() {
				for range ch {
				}
			}()
			c.Collect(ch)
			b.ReportAllocs()
			for b.Loop() {
				c.Collect(ch)
			}
			close(ch)
		})
	}
}

// BenchmarkGather is what the registry makes of it: all of a scrape but the text.
func BenchmarkGather(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprintf("breakers=%d", n), func(b *testing.B) {
			r := prometheus.NewRegistry()
			require.NoError(b, r.Register(prom.NewCollector(breakers(n)...)))
			b.ReportAllocs()
			for b.Loop() {
				_, err := r.Gather()
				require.NoError(b, err)
			}
		})
	}
}

// BenchmarkCollectWhileSeriesComeAndGo has one series of a thousand breakers
// vanish and return at every scrape, so that each rebuilds the table.
func BenchmarkCollectWhileSeriesComeAndGo(b *testing.B) {
	flicker := shows()
	c := prom.NewCollector(append(breakers(1_000), flicker)...)
	ch := make(chan prometheus.Metric, 38_000)
	c.Collect(ch)
	there := false
	b.ReportAllocs()
	for b.Loop() {
		for len(ch) > 0 {
			<-ch
		}
		if flicker.points = nil; !there {
			flicker.points = []point{slow("flicker", 1)}
		}
		there = !there
		c.Collect(ch)
	}
}

func breakers(n int) []stat.Source {
	sources := make([]stat.Source, n)
	for k := range sources {
		sources[k] = still(breakerLike(fmt.Sprintf("breaker-%d", k)).points)
	}
	return sources
}
