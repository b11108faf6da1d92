package numbers

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/internal/friend"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/limiter/guava"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/throttle"
	"github.com/weir-go/weir/window"
)

// object is a kind of object with the bound of its bytes on a 64-bit machine.
type object struct {
	name  string
	bytes uint64
	build func() any
}

var testRate = limiter.PerSecond(100)

var objects = []object{
	{"`window.Counter`", 550, func() any {
		c := window.NewCounter(window.Config{})
		inEachBucket(10, func(t time.Time) { c.AddAt(t, 1) })
		return c
	}},
	{"`window.Calls`, after one call", 600, func() any { return usedCalls(window.CallsConfig{}, 1) }},
	{"`window.Calls`", 1200, func() any { return usedCalls(window.CallsConfig{}, 10) }},
	{"`window.Calls` of 100 buckets", 7000, func() any { return usedCalls(window.CallsConfig{Buckets: 100}, 100) }},
	{"`window.Calls` with Latency", 38_000, func() any {
		return withLatencies(window.NewCallsAt(window.CallsConfig{Buckets: 12, Latency: true}, t0))
	}},
	{"`window.View` of 60 buckets, before the first reading", 400, func() any { return window.NewView(window.Config{Buckets: 60}) }},
	{"`breaker.Breaker`, after one call", 1400, func() any { return usedBreaker(breaker.Config{}, 1) }},
	{"`breaker.Breaker`", 2300, func() any { return usedBreaker(breaker.Config{}, 10) }},
	{"`breaker.Breaker` with Latency, after one call", 6500, func() any { return usedBreaker(breaker.Config{Latency: true}, 1) }},
	{"`breaker.Breaker` with Latency", 39_000, func() any { return usedBreaker(breaker.Config{Buckets: 12, Latency: true}, 12) }},
	{"`breaker.Breaker` in shadow mode, without calls", 3000, func() any { return breaker.New("b", breaker.Config{Force: breaker.Shadow}) }},
	{"`throttle.Throttle`, after one call", 800, func() any {
		th := throttle.New("t", throttle.Config{})
		_ = th.Run(context.Background(), func(context.Context) error { return nil })
		return th
	}},
	{"`limiter.TokenBucket`", 500, func() any { return limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: testRate}) }},
	{"`limiter.NewFixedWindow`", 250, func() any { return limiter.NewFixedWindow(limiter.WindowConfig{Limit: 1, Window: time.Second}) }},
	{"`limiter.NewSlidingWindow`", 550, func() any { return usedWindow(10) }},
	{"`limiter.NewSlidingWindow` of 100 parts", 2200, func() any { return usedWindow(100) }},
	{"`limiter.NewSlidingLog` with 1,000 entries", 25_000, func() any { return fullLog(1000) }},
	{"`limiter.LeakyBucket`", 300, func() any { return limiter.NewLeakyBucket(limiter.LeakyBucketConfig{Rate: testRate}) }},
	{"`guava.NewSmoothBursty`", 600, func() any { return guava.NewSmoothBursty(guava.SmoothBurstyConfig{Rate: testRate}) }},
	{"`guava.NewSmoothWarmingUp`", 600, func() any {
		return guava.NewSmoothWarmingUp(guava.SmoothWarmingUpConfig{Rate: testRate, WarmUp: time.Second})
	}},
	{"`inflight.Limiter`", 272, func() any { return inflight.New(inflight.Config{Limit: 1}) }},
	{"`limiter.Joint` with a name, beside its limiter", 450, func() any {
		return limiter.NewJoint("n", fastBucket)
	}},
	{"the same, after a wait and a reading of its metrics", 4700, func() any { return usedJoint() }},
	{"`weir.Gate` with both, after one call", 2400, func() any {
		g := weir.New("g", weir.Config{Rate: testRate})
		_ = g.Run(context.Background(), func(context.Context) error { return nil })
		return g
	}},
}

// inEachBucket calls f at a time in each of the buckets of a window of 10 s, and in two more.
func inEachBucket(buckets int, f func(t time.Time)) {
	for i := range buckets + 2 {
		f(t0.Add(time.Duration(i) * 10 * time.Second / time.Duration(buckets)))
	}
}

// usedCalls returns a window with a call in each bucket, or with one call.
func usedCalls(c window.CallsConfig, buckets int) *window.Calls {
	calls := window.NewCallsAt(c, t0)
	if buckets == 1 {
		calls.RecordAt(t0, window.Success, time.Second)
		return calls
	}
	inEachBucket(buckets, func(t time.Time) { calls.RecordAt(t, window.Success, time.Second) })
	return calls
}

// usedWindow returns a sliding window with a request in each part.
func usedWindow(parts int) *limiter.Window {
	l := limiter.NewSlidingWindow(limiter.WindowConfig{Limit: 1000, Window: 10 * time.Second, Buckets: parts})
	inEachBucket(parts, func(t time.Time) { l.TakeAt(t, 1) })
	return l
}

// usedBreaker returns a breaker with a call in each bucket, or with one call.
func usedBreaker(c breaker.Config, buckets int) *breaker.Breaker {
	inside := breaker.Inside(friend.Key{})
	b := inside.New("b", c, t0)
	call := func(t time.Time) {
		p, _ := inside.AllowAt(b, t)
		inside.RecordAt(&p, t, breaker.Success)
	}
	if buckets == 1 {
		call(t0)
		return b
	}
	inEachBucket(buckets, call)
	return b
}

var fastBucket = limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1_000_000), Burst: 1})

// usedJoint returns a Joint for which a caller has waited, and whose metrics were read.
func usedJoint() *limiter.Joint {
	j := limiter.NewJoint("n", fastBucket)
	for range 20 { // one of them waits for the token of the one before
		_ = j.Wait(context.Background(), 1)
	}
	j.Observe(func(*stat.Series, float64) bool { return true })
	return j
}

func fullLog(n int) *limiter.Window {
	l := limiter.NewSlidingLog(limiter.WindowConfig{Limit: n, Window: time.Hour})
	for i := range 5 * n { // five times, so that the first entries have expired
		l.TakeAt(t0.Add(time.Duration(i)*time.Hour/time.Duration(n)), 1)
	}
	return l
}

// withLatencies records a latency in each part of the window.
func withLatencies(c *window.Calls) *window.Calls {
	for i := range 30 {
		c.RecordAt(t0.Add(time.Duration(i)*time.Second), window.Success, time.Second)
	}
	return c
}

// memoryTable returns the table of the bytes of the objects.
func memoryTable() string {
	table := headerRow("object", "bytes, at most")
	for _, o := range objects {
		table += row(o.name, formatThousands(o.bytes))
	}
	return table
}

func formatThousands(n uint64) string {
	if n < 1000 {
		return strconv.FormatUint(n, 10)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}

func TestMemory(t *testing.T) {
	for _, o := range objects {
		const n = 500
		var kept [n]any
		before := heapBytes()
		for i := range kept {
			kept[i] = o.build()
		}
		each := (heapBytes() - before) / n
		runtime.KeepAlive(&kept)
		t.Logf("%s: %d bytes", o.name, each)
		require.LessOrEqual(t, each, o.bytes, o.name)
	}
}

// TestMemoryGrowsByBuckets measures the bytes per bucket, and per call of LastCalls.
func TestMemoryGrowsByBuckets(t *testing.T) {
	const n, many = 20, 10_000
	size := func(build func() any) uint64 {
		var kept [n]any
		before := heapBytes()
		for i := range kept {
			kept[i] = build()
		}
		all := heapBytes() - before
		runtime.KeepAlive(&kept)
		return all / n
	}
	for name, c := range map[string]struct {
		build func(n int) any
		each  uint64
	}{
		"Buckets of a window":    {func(n int) any { return usedCalls(window.CallsConfig{Buckets: n}, n) }, 56},
		"Buckets of a breaker":   {func(n int) any { return usedBreaker(breaker.Config{Buckets: n}, n) }, 56},
		"Last of a window":       {func(n int) any { return window.NewCalls(window.CallsConfig{Last: n}) }, 48},
		"LastCalls of a breaker": {func(n int) any { return breaker.New("b", breaker.Config{LastCalls: n}) }, 48},
	} {
		grown := size(func() any { return c.build(many) }) - size(func() any { return c.build(20) })
		require.GreaterOrEqual(t, grown, c.each*many*9/10, name)
		const page = 8192 // large objects are rounded up to whole pages
		require.LessOrEqual(t, grown, c.each*many+page, name)
	}
}

func TestMemoryOfKeys(t *testing.T) {
	const keys = 100_000
	before := heapBytes()
	g := limiter.NewGroup(limiter.GroupConfig[int]{Rate: limiter.Per(1, time.Hour), Burst: 10, MaxKeys: 2 * keys})
	for key := range keys {
		g.Get(key).Take(1)
	}
	each := (heapBytes() - before) / keys
	runtime.KeepAlive(g)
	t.Logf("%d bytes per key", each)
	require.LessOrEqual(t, each, uint64(45))
}

func heapBytes() uint64 {
	runtime.GC()
	runtime.GC() // pools release their objects only in the second collection
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
