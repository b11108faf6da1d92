package alert

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/window"
)

// TestMemoryOfAQuantile checks the memory bounds in SECURITY.md, for a quantile with calls and for
// one whose calls have ended. A part with calls keeps 2 kB, and a part without calls nothing.
func TestMemoryOfAQuantile(t *testing.T) {
	const n = 100
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var quantiles [n]*latencyWindow
	var total window.Latency
	at := start
	sample := func(calls int64, d time.Duration) {
		for end := at.Add(d); at.Before(end); at = at.Add(20 * time.Second) {
			total.Counts[0] += calls
			for _, l := range quantiles {
				l.sample(at, total)
			}
		}
	}
	before := heapInUse()
	for i := range quantiles {
		quantiles[i] = &latencyWindow{width: time.Minute}
	}
	sample(1, 2*time.Hour)
	require.LessOrEqual(t, (heapInUse()-before)/n, int64(35_000))
	require.Len(t, quantiles[0].starts, latencyParts)
	t.Logf("%d bytes", (heapInUse()-before)/n)
	sample(0, time.Hour)
	require.LessOrEqual(t, (heapInUse()-before)/n, int64(8_000))
	t.Logf("%d bytes after the calls have ended", (heapInUse()-before)/n)
	require.Len(t, quantiles[0].starts, 1)
	runtime.KeepAlive(&quantiles)
}

func heapInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
