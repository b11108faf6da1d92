package breaker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/weir-go/weir/breaker"
)

// BenchmarkGroupFull adds new keys to a full group whose members have calls in their windows.
func BenchmarkGroupFull(b *testing.B) {
	const members = 100_000
	g := breaker.NewGroupAt[int]("g", breaker.GroupConfig{MaxKeys: members, Breaker: breaker.Config{Window: time.Hour}}, t0)
	for key := 0; g.Len() < members*99/100; key++ {
		m := g.GetAt(t0, key)
		p, _ := m.AllowAt(t0)
		p.RecordAt(t0, breaker.Success)
	}
	u, key := t0, 0
	b.ReportAllocs()
	for b.Loop() {
		if u = u.Add(time.Millisecond); u.Sub(t0) > 50*time.Minute {
			b.Fatal("the calls have left the windows")
		}
		key--
		g.GetAt(u, key)
	}
}

// BenchmarkGroupChurn calls keys that were not called for long, in a full group.
func BenchmarkGroupChurn(b *testing.B) {
	const keys = 10_000
	names := make([]string, 3*keys)
	for i := range names {
		names[i] = fmt.Sprint("host-", i)
	}
	g := breaker.NewGroup[string]("g", breaker.GroupConfig{MaxKeys: keys, Breaker: breaker.Config{Window: 10 * time.Millisecond}})
	for _, key := range names {
		_ = g.Get(key).Run(bg(), succeed)
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		_ = g.Get(names[i]).Run(bg(), succeed)
		if i++; i == len(names) {
			i = 0
		}
	}
	s := g.Stats()
	b.ReportMetric(float64(s.Evictions)/float64(b.N), "evictions/op")
}

func BenchmarkGroupObserveMembers(b *testing.B) {
	for _, members := range []int{100, 1000, 10_000, 100_000} {
		b.Run(fmt.Sprint(members), func(b *testing.B) {
			g := breaker.NewGroup[int]("g", breaker.GroupConfig{})
			for key := range members {
				_ = g.Get(key).Run(bg(), succeed)
			}
			for b.Loop() {
				for range g.Observe {
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(members), "ns/member")
		})
	}
}
