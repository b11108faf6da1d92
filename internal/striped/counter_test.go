package striped_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/striped"
)

func TestEveryAdditionIsCounted(t *testing.T) {
	const adders, each = 8, 50_000
	for name, stripedAtOnce := range map[string]bool{"on collision": false, "at once": true} {
		var c striped.Counter
		if stripedAtOnce {
			c.Stripe()
		}
		var done atomic.Bool
		var adding, reading sync.WaitGroup
		reading.Go(func() {
			for last := uint64(0); !done.Load(); {
				n := c.Load()
				if n < last || n > adders*each {
					t.Errorf("%s: the count went from %d to %d", name, last, n)
					return
				}
				last = n
			}
		})
		for range adders {
			adding.Go(func() {
				for i := range each {
					c.Add(1)
					if i == each/2 {
						c.Stripe() // while other goroutines add
					}
				}
			})
		}
		adding.Wait()
		done.Store(true)
		reading.Wait()
		require.EqualValues(t, adders*each, c.Load(), name)
	}
}

func TestWordLeavesOutStripes(t *testing.T) {
	var c striped.Counter
	c.Add(1)
	c.Stripe()
	c.Add(10)
	c.AddWord(100)
	require.EqualValues(t, 101, c.Word())
	require.EqualValues(t, 111, c.Load())
}

func TestUncontendedCounterIsNotStriped(t *testing.T) {
	var c striped.Counter
	for range 100_000 {
		c.Add(1)
	}
	require.EqualValues(t, 100_000, c.Word())
}

// TestEveryStripeCounts empties the pool before each addition, so that each addition chooses a
// stripe.
func TestEveryStripeCounts(t *testing.T) {
	var c striped.Counter
	c.Stripe()
	for n := range uint64(40) {
		require.Equal(t, n, c.Load())
		c.Add(1)
		runtime.GC()
		runtime.GC()
	}
}

// TestMemoryOfAStripedCounter measures what docs/accuracy.md says.
func TestMemoryOfAStripedCounter(t *testing.T) {
	const n = 500
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	counters := make([]striped.Counter, n)
	before := heap()
	for i := range counters {
		counters[i].Stripe()
		counters[i].Add(1)
	}
	bytes := (heap() - before) / n
	runtime.KeepAlive(counters)
	t.Logf("%d bytes", bytes)
	require.LessOrEqual(t, bytes, uint64(2100))
}

func TestAddAllocatesNothing(t *testing.T) {
	var c striped.Counter
	c.Stripe()
	require.Zero(t, testing.AllocsPerRun(1000, func() { c.Add(1) }))
}
