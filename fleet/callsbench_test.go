package fleet_test

import (
	"testing"

	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/window"
)

func BenchmarkCallsRecord(b *testing.B) {
	c := newCalls(connect(b), "bench", fleet.CallsConfig{})
	b.ReportAllocs()
	for b.Loop() {
		c.Record(window.Success, 0)
	}
}

func BenchmarkCallsCounts(b *testing.B) {
	c := newCalls(connect(b), "bench", fleet.CallsConfig{})
	b.ReportAllocs()
	for b.Loop() {
		_ = c.Counts()
	}
}
