package window_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/window"
)

func newTimedCalls(span time.Duration) *window.Calls {
	return window.NewCallsAt(window.CallsConfig{Span: span, Latency: true}, t0)
}

// quantileBounds returns the bounds of the bucket that holds a quantile.
func quantileBounds(l window.Latency, q float64) (lower, upper time.Duration) {
	share := min(max(q, 0), 1)
	if math.IsNaN(q) {
		share = 0
	}
	rank, below := max(int64(math.Ceil(share*float64(l.Count()))), 1), int64(0)
	for b := range l.Buckets() {
		if below += b.Count; below >= rank {
			return time.Duration(b.Lower * 1e9), time.Duration(b.Upper * 1e9)
		}
	}
	return 0, 0
}

// recordSuccesses counts a success of each duration at t0.
func recordSuccesses(c *window.Calls, times ...time.Duration) {
	for _, took := range times {
		c.RecordAt(t0, window.Success, took)
	}
}

func TestLatencyOfNoCalls(t *testing.T) {
	for name, c := range map[string]*window.Calls{
		"kept": newTimedCalls(time.Second), "not kept": window.NewCallsAt(window.CallsConfig{}, t0),
	} {
		l := c.LatencyAt(t0)
		require.Zero(t, l.Count(), name)
		require.Zero(t, l.Mean(), name)
		require.Zero(t, l.Quantile(0.5), name)
		lower, upper := quantileBounds(l, 0.5)
		require.Zero(t, lower+upper, name)
		for range l.Buckets() {
			require.Fail(t, "there are no buckets", name)
		}
		require.Zero(t, c.LifetimeLatency(), name)
	}
}

// FuzzQuantile compares the bucket of each quantile, and of its estimate, with that of the sorted
// durations.
func FuzzQuantile(f *testing.F) {
	f.Add(uint64(1), uint16(100), 0.5)
	f.Add(uint64(7), uint16(1), 1.0)
	f.Add(uint64(7), uint16(3), math.NaN())
	f.Fuzz(func(t *testing.T, seed uint64, n uint16, q float64) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		c := newTimedCalls(time.Second)
		times := make([]time.Duration, int(n)%500+1)
		for i := range times {
			times[i] = time.Duration(1100 * math.Exp(rnd.Float64()*21)) // 1.1 µs to 24 minutes
		}
		recordSuccesses(c, times...)
		slices.Sort(times)
		l := c.LatencyAt(t0)
		share := min(max(q, 0), 1)
		if math.IsNaN(q) {
			share = 0
		}
		exact := times[max(int(math.Ceil(share*float64(len(times)))), 1)-1]
		lower, upper := quantileBounds(l, q)
		require.GreaterOrEqual(t, exact, lower, "quantile %v of %d", q, len(times))
		require.LessOrEqual(t, exact, upper+1, "quantile %v of %d", q, len(times))
		require.LessOrEqual(t, float64(upper), float64(lower)*1.0906+2)
		require.GreaterOrEqual(t, l.Quantile(q), lower-1)
		require.LessOrEqual(t, l.Quantile(q), upper+1)
		require.Equal(t, times[len(times)-1], l.Max)
		require.Equal(t, int64(len(times)), l.Count())
	})
}

func TestLatencyOutsideItsRangeIsClampedAndCounted(t *testing.T) {
	c := newTimedCalls(time.Second)
	recordSuccesses(c, 0, -time.Second, 900*time.Nanosecond, 2*time.Hour, math.MaxInt64)
	l := c.LatencyAt(t0)
	require.Equal(t, int64(5), l.Count())
	require.Equal(t, int64(3), l.Under)
	require.Equal(t, int64(2), l.Over)
	require.Equal(t, int64(3), l.Counts[0])
	require.Equal(t, int64(2), l.Counts[window.LatencyBuckets-1])
	require.InDelta(t, 2*4096, l.Sum, 1e-5)
	require.Equal(t, time.Duration(math.MaxInt64), l.Max)
	for range 10_000 {
		recordSuccesses(c, math.MaxInt64)
	}
	require.InDelta(t, 10_002*4096.0, c.LatencyAt(t0).Sum, 1e-3, "the sum does not overflow")
}

func TestLatencyForgetsByTwelfths(t *testing.T) {
	c := window.NewCallsAt(window.CallsConfig{Span: 12 * time.Second, Buckets: 100, Latency: true}, t0)
	for s := range 24 {
		c.RecordAt(t0.Add(time.Duration(s)*time.Second), window.Success, time.Duration(s+1)*time.Millisecond)
	}
	l := c.LatencyAt(t0.Add(23 * time.Second))
	require.Equal(t, int64(12), l.Count())
	require.InDelta(t, float64(13+24)/2*12/1000, l.Sum, 1e-9)
	l = c.LatencyAt(t0.Add(30 * time.Second))
	require.Equal(t, int64(5), l.Count())
	l = c.LatencyAt(t0.Add(time.Hour))
	require.Zero(t, l)
	life := c.LifetimeLatency()
	require.Equal(t, int64(24), life.Count())
	require.Equal(t, 24*time.Millisecond, life.Max)
}

func TestIgnoredCallsHaveNoLatency(t *testing.T) {
	c := newTimedCalls(time.Second)
	c.RecordAt(t0, window.Ignored, time.Second)
	c.RecordAt(t0, window.Failure, time.Second)
	l := c.LatencyAt(t0)
	require.Equal(t, int64(1), l.Count())
}

func TestPlusIsExact(t *testing.T) {
	a, b, both := newTimedCalls(time.Second), newTimedCalls(time.Second), newTimedCalls(time.Second)
	rnd := rand.New(rand.NewPCG(5, 5))
	for range 1000 {
		took := time.Duration(rnd.Int64N(int64(time.Minute)))
		recordSuccesses(both, took)
		if rnd.IntN(2) == 0 {
			recordSuccesses(a, took)
		} else {
			recordSuccesses(b, took)
		}
	}
	got, want := a.LatencyAt(t0).Plus(b.LatencyAt(t0)), both.LatencyAt(t0)
	require.InDelta(t, want.Sum, got.Sum, 1e-6)
	got.Sum = want.Sum
	require.Equal(t, want, got)
}

func TestLatencyAsJSONHasNoBuckets(t *testing.T) {
	c := newTimedCalls(time.Second)
	recordSuccesses(c, time.Microsecond, 2*time.Second)
	text, err := json.Marshal(c.LatencyAt(t0))
	require.NoError(t, err)
	require.JSONEq(t, `{"sum": 2.000001, "max": 2000000000, "under": 0, "over": 0}`, string(text))
}

func TestQuantileBeyondThePrecisionOfFloats(t *testing.T) {
	l := window.Latency{Max: time.Second}
	l.Counts[100] = 1<<53 + 1
	require.NotZero(t, l.Quantile(1))
}

func TestLatencyLosesNothingUnderManyWriters(t *testing.T) {
	const writers, calls = 8, 10_000
	c := window.NewCalls(window.CallsConfig{Span: 12 * time.Millisecond, Latency: true})
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for i := range calls {
				c.Record(window.Success, time.Duration(i)*time.Microsecond)
				if i%100 == 0 {
					l := c.Latency()
					if n := l.Count(); n < 0 || n > writers*calls {
						t.Errorf("torn histogram of %d calls", n)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	l := c.LifetimeLatency()
	require.Equal(t, int64(writers*calls), l.Count())
	require.InDelta(t, writers*float64(calls)*(calls-1)/2/1e6, l.Sum, 1e-6)
	require.Equal(t, (calls-1)*time.Microsecond, l.Max)
}

// TestMemory measures the bytes that the documentation promises.
func TestMemory(t *testing.T) {
	require.LessOrEqual(t, int(unsafe.Sizeof(window.Calls{})), 48)
	for name, c := range map[string]struct {
		make  func() any
		bytes uint64
	}{
		"counter":       {func() any { return window.NewCounter(window.Config{}) }, 500},
		"calls":         {func() any { return window.NewCalls(window.CallsConfig{}) }, 1500},
		"100 buckets":   {func() any { return window.NewCalls(window.CallsConfig{Buckets: 100}) }, 700 + 128*48 + 100},
		"last 100":      {func() any { return window.NewCalls(window.CallsConfig{Last: 100}) }, 700 + 101*48 + 300},
		"latency":       {func() any { return window.NewCalls(window.CallsConfig{Latency: true}) }, 1500},
		"latency, used": {func() any { c := newTimedCalls(time.Second); recordSuccesses(c, 1); return c }, 45_000},
	} {
		const n = 1000 // enough to make allocations of the runtime negligible
		var kept [n]any
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		for i := range kept {
			kept[i] = c.make()
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		each := (after.HeapAlloc - before.HeapAlloc) / n
		runtime.KeepAlive(&kept)
		t.Logf("%s: %d bytes", name, each)
		require.LessOrEqual(t, each, c.bytes, name)
	}
}

// TestLatencyBucketsThatBeginInsideBuckets uses a latency whose buckets begin in the middle of
// those of the calls. A bucket of the latency begins with the first call in its time, not with the
// next bucket of the calls.
func TestLatencyBucketsThatBeginInsideBuckets(t *testing.T) {
	// 12 buckets of 2.5 s for the latency
	c := window.NewCallsAt(window.CallsConfig{Span: 30 * time.Second, Buckets: 30, Latency: true}, t0)
	at := func(seconds float64) time.Time { return t0.Add(time.Duration(seconds * float64(time.Second))) }
	c.RecordAt(at(2.2), window.Success, time.Millisecond)
	c.RecordAt(at(2.6), window.Success, time.Second)
	seen := c.LatencyAt(at(30)) // the 12 buckets from 2.5 s on
	require.EqualValues(t, 1, seen.Count())
	require.Equal(t, 1.0, seen.Sum)
	require.EqualValues(t, 2, c.LifetimeLatency().Count())
}

func TestLatencyOfCallsBeforeTheWindowBegan(t *testing.T) {
	c := newTimedCalls(time.Second)
	recordSuccesses(c, time.Second)
	c.RecordAt(t0.Add(-time.Hour), window.Success, time.Second)
	require.EqualValues(t, 2, c.LatencyAt(t0).Count())
	require.EqualValues(t, 2, c.LifetimeLatency().Count())
}

// Scenario B41.
func TestMeanOfFastAndSlow(t *testing.T) {
	c := window.NewCallsAt(window.CallsConfig{Slow: slowThreshold, Latency: true}, t0)
	for i, took := range []time.Duration{10 * time.Second, 10 * time.Second, 100 * time.Millisecond, 100 * time.Millisecond, 100 * time.Millisecond} {
		outcome := window.Success
		if i == 1 {
			outcome = window.Failure
		}
		c.RecordAt(t0, outcome, took)
	}
	l := c.LatencyAt(t0)
	require.InDelta(t, 20.3, l.Sum, 1e-9)
	require.Equal(t, 4060*time.Millisecond, l.Mean())
	require.Equal(t, 0.4, c.CountsAt(t0).SlowRate())
}
