package quota_test

import (
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter/quota"
)

func BenchmarkTake(b *testing.B) {
	for _, withFile := range []bool{false, true} {
		g := quota.New(quota.Config{Limit: math.MaxInt32, Every: quota.Month})
		if withFile {
			require.NoError(b, g.Open(filepath.Join(b.TempDir(), "quota")))
			b.Cleanup(func() { _ = g.Close() })
		}
		b.Run(fmt.Sprintf("file=%t", withFile), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				g.Get("customer").Take(1)
			}
		})
		b.Run(fmt.Sprintf("file=%t/parallel", withFile), func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					g.Get("customer").Take(1)
				}
			})
		})
	}
}

// Each token is a write of its own.
func BenchmarkTakeWithAWrite(b *testing.B) {
	g := quota.New(quota.Config{Limit: 199, Every: quota.Month})
	require.NoError(b, g.Open(filepath.Join(b.TempDir(), "quota")))
	defer g.Close()
	b.Run("one caller", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			g.Get(fmt.Sprint(i / 199)).Take(1)
		}
	})
	b.Run("32 callers", func(b *testing.B) {
		b.SetParallelism(16)
		b.RunParallel(func(p *testing.PB) {
			for i := 0; p.Next(); i++ {
				g.Get(fmt.Sprintf("%p %d", p, i/199)).Take(1)
			}
		})
	})
}

func BenchmarkBytesPerKey(b *testing.B) {
	const keys = 100_000
	var before, after runtime.MemStats
	for b.Loop() {
		g := quota.New(quota.Config{Limit: 10, Every: quota.Month})
		runtime.GC()
		runtime.ReadMemStats(&before)
		for i := range keys {
			g.Get(fmt.Sprint(i)).Take(1)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(g)
	}
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/keys, "B/key")
}
