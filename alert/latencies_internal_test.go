package alert

import (
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/window"
)

// Each mark is two kilobytes, so there is one a part and not one a sample.
func TestLatenciesKeepAMarkAPart(t *testing.T) {
	l := latencies{width: time.Minute}
	var total window.Latency
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for at := time.Duration(0); at < time.Hour; at += 5 * time.Second {
		total.Counts[0]++
		l.sample(start.Add(at), total)
		require.LessOrEqual(t, len(l.marks), latencyParts, "at %v", at)
		room := unsafe.Sizeof(l) + uintptr(cap(l.marks))*unsafe.Sizeof(mark{})
		require.LessOrEqual(t, room, uintptr(60_000), "at %v", at)
	}
}
