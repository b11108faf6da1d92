package limiter_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
)

// refundable is a window with RefundAt.
type refundable interface {
	limiter.TimedLimiter
	RefundAt(taken time.Time, n int)
}

func refundables() map[string]refundable {
	return map[string]refundable{
		"fixed": newFixedWindow(5, sec), "sliding": newSlidingWindow(5, sec, 10), "log": newSlidingLog(5, sec),
		"named": limiter.NewJoint(limiter.JointConfig{Name: "x"}, newSlidingLog(5, sec)),
		"joint": limiter.NewJoint(limiter.JointConfig{}, newFixedWindow(5, sec), newSlidingWindow(5, sec, 10), newSlidingLog(5, sec), newBucket(limiter.PerSecond(1000), 5)),
	}
}

// The tokens of a past window are refunded, and then those just taken.
func TestRefundAtGivesBackOnlyTokensThatStillCount(t *testing.T) {
	for name, l := range refundables() {
		later := 1100 * ms
		runSteps(t, l, step{0, 5, "ok"}, step{later, 5, "ok"})
		l.RefundAt(start, 5)
		r := l.TakeAt(start.Add(later), 1)
		require.False(t, r.OK, "%s: none of the five tokens just taken was given back", name)
		l.RefundAt(start.Add(later), 2)
		runSteps(t, l, step{later, 3, "refused"}, step{later, 2, "ok"}, step{later, 1, "refused"})
		l.RefundAt(start.Add(later), 0)
		l.RefundAt(start.Add(later), -1)
		runSteps(t, l, step{later, 1, "refused"})
		l.RefundAt(start.Add(hour), 9) // a time in the future; never fills beyond the limit
		runSteps(t, l, step{later, 5, "ok"}, step{later, 1, "refused"})
	}
}

func TestRefundAtOfTokensTakenEarlierInTheWindow(t *testing.T) {
	for _, l := range refundables() {
		runSteps(t, l, step{100 * ms, 2, "ok"}, step{700 * ms, 3, "ok"})
		l.RefundAt(start.Add(100*ms), 2)
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
		"joint":   limiter.NewJoint(limiter.JointConfig{}, limiter.NewSlidingLogAt(window, start)),
		"named":   limiter.NewJoint(limiter.JointConfig{Name: "x"}, limiter.NewSlidingLogAt(window, start)),
	} {
		l.TakeAt(start, 2)
		for i := range 3 {
			at := start.Add(time.Duration(i+1) * 2 * sec)
			require.True(t, l.TakeAt(at, 3).OK, "%s, %d", name, i)
			l.Refund(math.MaxInt)
			require.Equal(t, 5, l.TakeAt(at, 0).Remaining, "%s, %d", name, i)
			require.False(t, l.TakeAt(at, 6).OK, "%s, %d", name, i)
		}
	}
}
