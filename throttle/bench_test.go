package throttle_test

import (
	"testing"

	"github.com/weir-go/weir/throttle"
)

func BenchmarkThrottle(b *testing.B) {
	for name, c := range map[string]throttle.Config{"well": {}, "down": {}, "down, refusals counted": {CountRefused: true}} {
		b.Run(name, func(b *testing.B) {
			th, fn := throttle.New("t", c), succeed
			if name != "well" {
				fn = fail
			}
			b.ReportAllocs()
			for b.Loop() {
				_ = th.Run(bg(), fn)
			}
		})
	}
}

func BenchmarkThrottleParallel(b *testing.B) {
	th := throttle.New("t", throttle.Config{})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			_ = th.Run(bg(), fail)
		}
	})
}
