package limiter_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/testenv"
	"github.com/weir-go/weir/limiter"
)

func refundables() map[string]limiter.TimedLimiter {
	return map[string]limiter.TimedLimiter{
		"fixed": newFixedWindow(5, sec), "sliding": newSlidingWindow(5, sec, 10), "log": newSlidingLog(5, sec),
		"named": limiter.NewJoint("x", newSlidingLog(5, sec)),
		"joint": limiter.NewJoint("", newFixedWindow(5, sec), newSlidingWindow(5, sec, 10), newSlidingLog(5, sec), newBucket(limiter.PerSecond(1000), 5)),
	}
}

// The tokens of a past window are refunded, and then those just taken.
func TestARefundGivesBackOnlyTokensThatStillCount(t *testing.T) {
	for name, l := range refundables() {
		later := 1100 * ms
		runSteps(t, l, step{0, 5, "ok"}, step{later, 5, "ok"})
		limiter.RefundAt(l, start, 5)
		r := l.TakeAt(start.Add(later), 1)
		require.False(t, r.OK, "%s: none of the five tokens just taken was given back", name)
		limiter.RefundAt(l, start.Add(later), 2)
		runSteps(t, l, step{later, 3, "refused"}, step{later, 2, "ok"}, step{later, 1, "refused"})
		limiter.RefundAt(l, start.Add(later), 0)
		limiter.RefundAt(l, start.Add(later), -1)
		runSteps(t, l, step{later, 1, "refused"})
		// a time in the future; never fills beyond the limit
		limiter.RefundAt(l, start.Add(hour), 9)
		runSteps(t, l, step{later, 5, "ok"}, step{later, 1, "refused"})
	}
}

func TestARefundOfTokensTakenEarlierInTheWindow(t *testing.T) {
	for _, l := range refundables() {
		runSteps(t, l, step{100 * ms, 2, "ok"}, step{700 * ms, 3, "ok"})
		limiter.RefundAt(l, start.Add(100*ms), 2)
		runSteps(t, l, step{900 * ms, 3, "refused"}, step{900 * ms, 2, "ok"})
	}
}

func TestASlidingLogReleasesMemory(t *testing.T) {
	const entries = 500_000
	before := heapInUse()
	log := newSlidingLog(entries, sec)
	for i := range entries {
		log.TakeAt(start.Add(time.Duration(i)), 1)
	}
	require.Greater(t, int64(heapInUse()-before), int64(16*entries/2))
	for i := range 20 {
		require.True(t, log.TakeAt(start.Add(hour+time.Duration(i)*time.Minute), 1).OK)
	}
	require.Less(t, int64(heapInUse()-before), int64(1<<14))
	runSteps(t, log, step{hour + 19*time.Minute, 0, "ok 499999/500000 reset 1s"})
}

// A refund of the largest int fills the limiter, also if some tokens no longer count.
func TestRefundOfVeryMany(t *testing.T) {
	window := limiter.WindowConfig{Limit: 5, Window: sec}
	for name, l := range map[string]limiter.TimedLimiter{
		"bucket":  limiter.NewTokenBucketAt(limiter.TokenBucketConfig{Rate: limiter.Per(1, time.Hour), Burst: 5}, start),
		"key":     limiter.NewGroupAt(limiter.GroupConfig[int]{Rate: limiter.Per(1, time.Hour), Burst: 5}, start).Get(1),
		"fixed":   limiter.NewFixedWindowAt(window, start),
		"log":     limiter.NewSlidingLogAt(window, start),
		"sliding": limiter.NewSlidingWindowAt(limiter.WindowConfig{Limit: 5, Window: sec}, start),
		"joint":   limiter.NewJoint("", limiter.NewSlidingLogAt(window, start)),
		"named":   limiter.NewJoint("x", limiter.NewSlidingLogAt(window, start)),
	} {
		l.TakeAt(start, 2)
		for i := range 3 {
			at := start.Add(time.Duration(i+1) * 2 * sec)
			require.True(t, l.TakeAt(at, 3).OK, "%s, %d", name, i)
			limiter.Refund(l, math.MaxInt)
			require.Equal(t, 5, l.TakeAt(at, 0).Remaining, "%s, %d", name, i)
			require.False(t, l.TakeAt(at, 6).OK, "%s, %d", name, i)
		}
	}
}

// boundedLimiter is a limiter and the most tokens that it allows within a span of time, including
// both ends.
type boundedLimiter struct {
	limiter.TimedLimiter
	most func(span time.Duration) int
}

// boundedLimiters returns limiters of 5 tokens per second, or of 5 tokens and 7 more per second.
func boundedLimiters() map[string]boundedLimiter {
	bucket := func(span time.Duration) int { return 5 + int(7*span/sec) }
	log := func(span time.Duration) int { return 5 * (1 + int(span/sec)) }
	config := limiter.GroupConfig[string]{Rate: limiter.PerSecond(7), Burst: 5, MaxKeys: 1, ShareNew: true}
	full := limiter.NewGroupAt(config, start)
	for range 5 {
		full.Get("other").TakeAt(start.Add(1000*hour), 5) // never idle in this test
	}
	paced := limiter.NewLeakyBucketAt(limiter.LeakyBucketConfig{Rate: limiter.PerSecond(7), Capacity: 5}, start)
	return map[string]boundedLimiter{
		"bucket":  {newBucket(limiter.PerSecond(7), 5), bucket},
		"plain":   {newBucket(limiter.Per(1, 100*ms), 5), func(span time.Duration) int { return 5 + int(span/(100*ms)) }},
		"key":     {limiter.NewGroupAt(config, start).Get("k"), bucket},
		"no room": {full.Get("k"), bucket},
		"fixed":   {newFixedWindow(5, sec), func(span time.Duration) int { return 5 * (2 + int(span/sec)) }},
		"sliding": {newSlidingWindow(5, sec, 10), log},
		"log":     {newSlidingLog(5, sec), log},
		"joint":   {limiter.NewJoint("x", newBucket(limiter.PerSecond(7), 5), newSlidingLog(5, sec)), bucket},
		"leaky":   {paced, func(span time.Duration) int { return 5 + 5 + int(7*span/sec) }},
	}
}

// begun is tokens with which calls have begun.
type begun struct {
	at time.Duration
	n  int
	r  *limiter.Reservation
}

// Some tokens are given back, at any time after they were taken, all at once or in parts. With the
// others calls have begun. With WEIR_SOAK=true there are four times as many seeds.
func TestALateRefundNeverAllowsTooMuch(t *testing.T) {
	for seed := range uint64(testenv.Repeat(200, 50)) {
		for name, l := range boundedLimiters() {
			random := rand.New(rand.NewPCG(seed, 1))
			var at time.Duration
			var all []begun
			returned := 0
			for range 150 {
				if random.IntN(4) == 0 {
					at += time.Duration(random.Int64N(int64(100 * ms << random.IntN(5))))
				}
				if random.IntN(3) == 0 && len(all) > 0 {
					b := &all[max(len(all)-1-random.IntN(12), 0)]
					n := []int{b.n, random.IntN(b.n + 1)}[random.IntN(2)]
					b.r.RefundAt(start.Add(at), n)
					b.n -= n
					returned += n
				}
				for n := 1 + random.IntN(5); n > 0; n-- {
					if r := limiter.ReserveAt(l.TimedLimiter, start.Add(at), n); r.OK {
						all = append(all, begun{at, n, r})
						break
					}
				}
			}
			require.Greater(t, returned, 5, name)
			for i, first := range all {
				sum := 0
				for _, last := range all[i:] {
					sum += last.n
					span := last.at - first.at
					require.LessOrEqual(t, sum, l.most(span), "%s, seed %d: within %s from %s", name, seed, span, first.at)
				}
			}
		}
	}
}

// A bucket that has been empty since the take gets all tokens back, however late.
func TestALateRefundToABusyBucket(t *testing.T) {
	b := newBucket(limiter.PerSecond(10), 100)
	runSteps(t, b, step{0, 90, "ok"})
	r := limiter.ReserveAt(b, start, 10)
	require.True(t, r.OK)
	runSteps(t, b, step{5 * sec, 50, "ok"}, step{5 * sec, 1, "refused"})
	r.RefundAt(start.Add(5*sec), 4)
	runSteps(t, b, step{5 * sec, 4, "ok"}, step{5 * sec, 1, "refused"})
	r.RefundAt(start.Add(5*sec), 100)
	runSteps(t, b, step{5 * sec, 6, "ok"}, step{5 * sec, 1, "refused"})
	r.RefundAt(start.Add(5*sec), 100)
	runSteps(t, b, step{5 * sec, 1, "refused"})
}

// The tokens of a key without room go back to the bucket that all such keys share, although the key
// has got room since.
func TestARefundGoesWhereTheTokensWereTaken(t *testing.T) {
	g := limiter.NewGroupAt(limiter.GroupConfig[string]{Rate: limiter.Per(1, time.Hour), Burst: 5, MaxKeys: 1, ShareNew: true}, start)
	g.Get("a").TakeAt(start, 1)
	shared := limiter.ReserveAt(g.Get("b"), start, 5)
	require.True(t, shared.OK)
	require.True(t, g.Forget("a"))
	runSteps(t, g.Get("b"), step{0, 5, "ok"})
	shared.RefundAt(start, 5)
	runSteps(t, g.Get("b"), step{0, 1, "refused"})
	runSteps(t, g.Get("c"), step{0, 5, "ok"})
}

// A key that was forgotten has a full bucket, to which no earlier token comes back.
func TestAForgottenKeyGetsNoEarlierTokensBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := limiter.NewGroup(limiter.GroupConfig[string]{Rate: limiter.Per(1, time.Hour), Burst: 2})
		key := g.Get("k")
		earlier := limiter.Reserve(key, 2)
		require.True(t, g.Forget("k"))
		time.Sleep(time.Nanosecond)
		later := limiter.Reserve(key, 2)
		require.True(t, later.OK)
		earlier.Refund(2)
		require.False(t, key.Take(1).OK)
		later.Refund(2)
		require.True(t, key.Take(2).OK)
	})
}
