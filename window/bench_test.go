package window_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-go/weir/window"
)

// BenchmarkFloor is the least that counting over time can cost: one clock reading and one atomic
// add.
func BenchmarkFloor(b *testing.B) {
	epoch, total := time.Now(), atomic.Int64{}
	b.ReportAllocs()
	for b.Loop() {
		if time.Since(epoch) >= 0 {
			total.Add(1)
		}
	}
}

func BenchmarkCounterAdd(b *testing.B) {
	c := window.NewCounter(window.Config{})
	b.ReportAllocs()
	for b.Loop() {
		c.Add(1)
	}
}

func BenchmarkCounterAddParallel(b *testing.B) {
	c := window.NewCounter(window.Config{})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			c.Add(1)
		}
	})
}

func BenchmarkCallsRecord(b *testing.B) {
	c := window.NewCalls(window.CallsConfig{})
	b.ReportAllocs()
	for b.Loop() {
		c.Record(window.Success, 0)
	}
}

func BenchmarkCallsRecordParallel(b *testing.B) {
	c := window.NewCalls(window.CallsConfig{})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			c.Record(window.Success, 0)
		}
	})
}

func BenchmarkCallsCounts(b *testing.B) {
	c := window.NewCalls(window.CallsConfig{})
	c.Record(window.Failure, 0)
	b.ReportAllocs()
	for b.Loop() {
		if c.Counts().Failures > 1 {
			b.Fatal("one failure counted twice")
		}
	}
}

func BenchmarkCallsRecordLatency(b *testing.B) {
	c := window.NewCalls(window.CallsConfig{Latency: true, Slow: time.Second})
	b.ReportAllocs()
	for b.Loop() {
		c.Record(window.Success, 3*time.Millisecond)
	}
}

func BenchmarkCallsRecordLatencyParallel(b *testing.B) {
	c := window.NewCalls(window.CallsConfig{Latency: true, Slow: time.Second})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			c.Record(window.Success, 3*time.Millisecond)
		}
	})
}

func BenchmarkCallsRecordLast(b *testing.B) {
	c := window.NewCalls(window.CallsConfig{Last: 100})
	b.ReportAllocs()
	for b.Loop() {
		c.Record(window.Success, 0)
	}
}
