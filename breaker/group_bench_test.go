package breaker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/weir-go/weir/breaker"
)

func BenchmarkGroupGet(b *testing.B) {
	keys := make([]string, 5000)
	for i := range keys {
		keys[i] = fmt.Sprint("host-", i)
	}
	full := breaker.GroupConfig{Breaker: breaker.Config{MinCalls: 1}, MaxKeys: 1000}
	for name, c := range map[string]breaker.GroupConfig{"members": {}, "most of them unguarded": full} {
		b.Run(name, func(b *testing.B) {
			g, i := breaker.NewGroup[string]("g", c), 0
			for _, key := range keys {
				_ = g.Get(key).Run(bg(), fail)
			}
			b.ReportAllocs()
			for b.Loop() {
				g.Get(keys[i])
				if i++; i == len(keys) {
					i = 0
				}
			}
		})
	}
	b.Run("new keys", func(b *testing.B) {
		g, i := breaker.NewGroupAt[int]("g", breaker.GroupConfig{}, t0), 0
		b.ReportAllocs()
		for b.Loop() {
			g.GetAt(after(time.Duration(i)*2*time.Millisecond), i)
			i++
		}
	})
	b.Run("one key, parallel", func(b *testing.B) {
		g := breaker.NewGroup[string]("g", breaker.GroupConfig{})
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				g.Get("a")
			}
		})
	})
}

func BenchmarkGroupObserve(b *testing.B) {
	g := breaker.NewGroup[int]("g", breaker.GroupConfig{})
	for i := range 10_000 {
		g.Get(i)
	}
	b.ReportAllocs()
	for b.Loop() {
		for range g.Observe {
		}
	}
}
