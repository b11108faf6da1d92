package limiter_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/testenv"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/limiter/limitertest"
)

// keyLimiter is one key of a group as a limiter.
type keyLimiter struct {
	*limiter.Group[string]
	key string
}

func (m keyLimiter) Take(n int) limiter.Result                { return m.Group.Get(m.key).Take(n) }
func (m keyLimiter) TakeAt(t time.Time, n int) limiter.Result { return m.Group.Get(m.key).TakeAt(t, n) }
func (m keyLimiter) Refund(n int)                             { m.Group.Get(m.key).RefundNow(n) }

// Each key passes limitertest while other keys come and go.
func TestGroupConformance(t *testing.T) {
	s := bucketSubject(limiter.PerSecond(3), 4, 3, sec)
	s.New = func(t0 time.Time) limiter.TimedLimiter {
		g := limiter.NewGroupAt(limiter.GroupConfig[string]{Rate: limiter.PerSecond(3), Burst: 4, MaxKeys: 5000}, t0)
		return busyLimiter{keyLimiter{g, "me"}}
	}
	limitertest.Run(t, s)
}

// busyLimiter adds a new key before each request.
type busyLimiter struct{ keyLimiter }

func (b busyLimiter) TakeAt(t time.Time, n int) limiter.Result {
	b.Group.Get(fmt.Sprint(rand.Uint32())).TakeAt(t, 1)
	return b.keyLimiter.TakeAt(t, n)
}

func newGroup(c limiter.GroupConfig[string]) *limiter.Group[string] {
	return limiter.NewGroupAt(c, start)
}

func TestGroupLimitsEachKey(t *testing.T) {
	g := newGroup(limiter.GroupConfig[string]{Rate: limiter.PerSecond(1), Burst: 2})
	runSteps(t, keyLimiter{g, "ann"}, step{0, 2, "ok 0/2 reset 2s"}, step{0, 1, "refused 0/2 retry 1s reset 2s"})
	runSteps(t, keyLimiter{g, "bob"}, step{0, 0, "ok 2/2 reset 0s"}, step{0, 3, "refused 2/2 retry never reset 0s"}, step{0, -1, "refused"})
	require.Equal(t, 1, g.Len(), "a peek or an invalid request adds no key")
	runSteps(t, keyLimiter{g, "bob"}, step{0, 2, "ok"})
	require.Equal(t, 2, g.Len())
}

// Scenario 65: memory is bounded, new keys give no old key a second burst, and idle keys are
// evicted.
func TestGroupIsBounded(t *testing.T) {
	g := newGroup(limiter.GroupConfig[string]{Rate: limiter.PerMinute(1), Burst: 1, MaxKeys: 10_000})
	runSteps(t, keyLimiter{g, "exhausted"}, step{0, 1, "ok"})
	allowed := 0
	for i := range testenv.Repeat(1_000_000, 200_000) {
		if g.Get(fmt.Sprint(i)).TakeAt(start.Add(time.Duration(i)*10*us), 1).OK {
			allowed++
		}
		if i%1000 == 0 {
			runSteps(t, keyLimiter{g, "exhausted"}, step{time.Duration(i) * 10 * us, 1, "refused"})
		}
	}
	require.InDelta(t, 10_000, allowed, 300, "keys in use stay, and new keys are refused")
	require.LessOrEqual(t, g.Len(), 10_000)
	require.Zero(t, g.Evictions())

	refused := 0
	for i := range 7000 { // a minute later all keys are idle, and new ones evict them
		if !g.Get(fmt.Sprint("new", i)).TakeAt(start.Add(2*time.Minute), 1).OK {
			refused++
		}
	}
	require.Less(t, refused, 10, "a new key searches two of the shards for idle keys, which may have none left")
	require.LessOrEqual(t, g.Len(), 10_000)
	require.Positive(t, g.Evictions())
}

func TestGroupEvictsIdleKeysForNewOnes(t *testing.T) {
	g := newGroup(limiter.GroupConfig[string]{Rate: limiter.PerSecond(100), Burst: 1})
	for i := range 100_000 { // a thousand per second, each in use for 10 ms
		require.True(t, g.Get(fmt.Sprint(i)).TakeAt(start.Add(time.Duration(i)*ms), 1).OK)
	}
	require.Less(t, g.Len(), 2000)
}

func TestGroupWhenFull(t *testing.T) {
	full := func(shareNew bool) *limiter.Group[string] {
		g := newGroup(limiter.GroupConfig[string]{Rate: limiter.PerSecond(1), Burst: 2, MaxKeys: 1, ShareNew: shareNew})
		runSteps(t, keyLimiter{g, "first"}, step{0, 1, "ok"})
		return g
	}
	g := full(false)
	runSteps(t, keyLimiter{g, "second"}, step{0, 1, "refused 0/2 retry 1s reset 0s"}, step{0, 0, "ok 2/2 reset 0s"}, step{sec, 1, "refused"}, step{sec + 1, 1, "ok"})
	require.EqualValues(t, 1, g.Evictions())
	g = full(true)
	runSteps(t, keyLimiter{g, "second"}, step{0, 1, "ok"})
	runSteps(t, keyLimiter{g, "third"}, step{0, 1, "ok"}, step{0, 1, "refused"})
	runSteps(t, keyLimiter{g, "first"}, step{0, 1, "ok"})
	require.Equal(t, 1, g.Len())
	require.NoError(t, g.SetLimitsAt(start, limiter.Tier{Rate: limiter.PerSecond(100), Burst: 2}))
	runSteps(t, keyLimiter{g, "fourth"}, step{0, 1, "refused 0/2 retry 10ms reset 20ms"})
}

// Scenario 66: keys are compared as a whole. Two keys with the same hash do not share tokens.
func TestGroupKeepsKeysApart(t *testing.T) {
	type key struct {
		user   string
		action int
	}
	g := limiter.NewGroupAt(limiter.GroupConfig[key]{Rate: limiter.Per(1, time.Hour), Burst: 1, MaxKeys: 100_000}, start)
	for i := range 50_000 {
		require.True(t, g.Get(key{fmt.Sprint(i % 100), i / 100}).TakeAt(start, 1).OK)
	}
	for i := range 50_000 {
		require.False(t, g.Get(key{fmt.Sprint(i % 100), i / 100}).TakeAt(start, 1).OK)
	}
}

func TestGroupTiers(t *testing.T) {
	g := newGroup(limiter.GroupConfig[string]{
		Rate: limiter.PerSecond(1), Burst: 1,
		Tiers: []limiter.Tier{{Rate: limiter.PerSecond(10), Burst: 5}, {Rate: limiter.Unlimited()}},
		TierOf: func(key string) int {
			return strings.Index("gs", key[:1]) // gold, staff
		},
	})
	runSteps(t, keyLimiter{g, "ann"}, step{0, 1, "ok"}, step{0, 1, "refused"})
	runSteps(t, keyLimiter{g, "gold-bob"}, step{0, 5, "ok"}, step{0, 1, "refused 0/5 retry 100ms reset 500ms"})
	runSteps(t, keyLimiter{g, "staff-eve"}, step{0, 1e6, "ok"}, step{0, 1e6, "ok"})
	require.Equal(t, 2, g.Len())

	require.NoError(t, g.SetTierAt(start, 0, limiter.Tier{Rate: limiter.PerSecond(1), Burst: 10}))
	runSteps(t, keyLimiter{g, "gold-bob"}, step{0, 1, "refused 0/10 retry 1s reset 10s"})
	require.NoError(t, g.SetLimitsAt(start, limiter.Tier{Rate: limiter.PerSecond(100), Burst: 1}))
	runSteps(t, keyLimiter{g, "ann"}, step{5 * ms, 1, "refused 0/1 retry 5ms reset 5ms"}, step{10 * ms, 1, "ok"})
	require.Error(t, g.SetLimits(limiter.Tier{}))
}

func TestGroupRefunds(t *testing.T) {
	g := newGroup(limiter.GroupConfig[string]{Rate: limiter.PerSecond(1), Burst: 3})
	runSteps(t, keyLimiter{g, "ann"}, step{0, 3, "ok"})
	g.Get("ann").RefundNow(2)
	g.Get("ann").RefundNow(-1)
	g.Get("nobody").RefundNow(2)
	runSteps(t, keyLimiter{g, "ann"}, step{0, 0, "ok 2/3 reset 1s"})
	require.Equal(t, 1, g.Len())
}

func TestGroupConfigNamesInvalidFields(t *testing.T) {
	bad := limiter.GroupConfig[int]{Tiers: []limiter.Tier{{Rate: limiter.PerSecond(-1)}}, MaxKeys: -1}
	require.EqualError(t, bad.Validate(), "limiter: Rate is unset, must be above 0\n"+
		"tier 0: limiter: Rate is -1/s, must be above 0\n"+
		"limiter: Tiers has length 1 and TierOf is set: false, must have both or neither\n"+
		"limiter: MaxKeys is -1, must be at least 1 (or 0 for the default)")
	require.Panics(t, func() { limiter.NewGroup(bad) })
}

func TestGroupTakeAllocatesNothing(t *testing.T) {
	g := limiter.NewGroup(limiter.GroupConfig[string]{Rate: limiter.PerSecond(1), Burst: 5})
	g.Get("ann").Take(1)
	require.Zero(t, testing.AllocsPerRun(1000, func() { g.Get("ann").Take(1); g.Get("ann").RefundNow(1) }))
}

func TestGroupDuringTraffic(t *testing.T) {
	g := newGroup(limiter.GroupConfig[string]{Rate: limiter.Per(1, time.Hour), Burst: 10})
	allowed := callAtOnce(8, func() bool {
		n := 0
		for i := range 5000 {
			if g.Get("shared").TakeAt(start, 1).OK {
				n++
			}
			g.Get(fmt.Sprint(i)).TakeAt(start, 1)
			if i%1000 == 0 {
				_ = g.SetLimitsAt(start, limiter.Tier{Rate: limiter.Per(1, time.Hour), Burst: 10})
				g.Len()
			}
		}
		return n > 10
	})
	require.Zero(t, allowed)
	require.False(t, g.Get("shared").TakeAt(start, 1).OK)
}

func BenchmarkGroup(b *testing.B) {
	for _, keys := range []int{1, 1_000_000} {
		b.Run(fmt.Sprint(keys, " keys"), func(b *testing.B) {
			g := limiter.NewGroup(limiter.GroupConfig[string]{Rate: limiter.Per(1, time.Hour), Burst: 1000, MaxKeys: 2 * keys})
			names := make([]string, keys)
			for i := range names {
				names[i] = fmt.Sprint("user:", i)
			}
			before := heapInUse()
			for _, name := range names {
				g.Get(name).Take(1)
			}
			perKey := float64(int64(heapInUse()-before)) / float64(keys)
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				g.Get(names[i]).Take(1)
				if i += 7919; i >= keys {
					i %= keys
				}
			}
			b.ReportMetric(perKey, "B/key")
		})
	}
}

func heapInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// An evicted key is used at a time before its eviction. It gets no token twice.
func TestAnEvictedKeyHasNoNewTokensAtAnEarlierTime(t *testing.T) {
	g := newGroup(limiter.GroupConfig[string]{Rate: limiter.PerSecond(1), Burst: 5, MaxKeys: 1})
	runSteps(t, keyLimiter{g, "ann"}, step{0, 3, "ok"})
	runSteps(t, keyLimiter{g, "bob"}, step{5 * sec, 1, "ok"})
	require.EqualValues(t, 1, g.Evictions())
	runSteps(t, keyLimiter{g, "ann"}, step{1 * sec, 0, "ok 3/5 reset 2s"})
	require.NoError(t, g.SetLimitsAt(start.Add(5*sec), limiter.Tier{Rate: limiter.PerSecond(2), Burst: 5}))
	runSteps(t, keyLimiter{g, "ann"}, step{6 * sec, 5, "ok 0/5 reset 2.5s"})
}
