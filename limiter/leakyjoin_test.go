package limiter_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
)

func newLeakyBucket(r limiter.Rate, capacity int) *limiter.LeakyBucket {
	return limiter.NewLeakyBucketAt(limiter.LeakyBucketConfig{Rate: r, Capacity: capacity}, start)
}

func TestTakeOfALeakyBucketDoesNotWait(t *testing.T) {
	runSteps(t, newLeakyBucket(limiter.PerSecond(2), 3),
		step{0, 0, "ok 3/3 reset 0s"},
		step{0, 1, "ok 0/3 reset 500ms"},
		step{100 * ms, 1, "refused 0/3 retry 400ms reset 400ms"},
		step{500 * ms, 3, "ok 0/3 reset 1.5s"}, // delays the next request by three intervals
		step{1999 * ms, 1, "refused 0/3 retry 1ms reset 1ms"},
		step{2 * sec, 4, "refused 3/3 retry never reset 0s"},
		step{2 * sec, -1, "refused 3/3 retry never reset 0s"},
		step{2 * sec, 1, "ok"})
	runSteps(t, newLeakyBucket(limiter.Unlimited(), 3), step{0, 3, "ok 3/3 reset 0s"}, step{0, 3, "ok 3/3 reset 0s"})
}

func TestARefundToALeakyBucketServesTheNextWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiter.NewLeakyBucket(limiter.LeakyBucketConfig{Rate: limiter.PerMinute(1), Capacity: 5})
		require.True(t, l.Take(2).OK)
		callers := newCallers(t, l)
		callers.start(t.Context(), "next", 1)
		time.Sleep(sec)
		require.False(t, l.Take(1).OK, "a caller waits")
		limiter.Refund(l, 1)
		callers.requireResults(arrival{"next", time.Minute, nil})
		limiter.Refund(l, 100)
		require.True(t, l.Take(1).OK)
		require.False(t, l.Take(1).OK, "a refund gives no burst")
	})
}

func TestALeakyBucketInAJoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		paced := limiter.NewLeakyBucket(limiter.LeakyBucketConfig{Rate: limiter.PerSecond(1), Capacity: 10, Name: "paced"})
		all := limiter.NewJoint("", paced, limiter.NewSlidingLog(limiter.WindowConfig{Limit: 3, Window: time.Minute}))
		callers := newCallers(t, all)
		for _, who := range []string{"a", "b", "c", "d"} {
			callers.start(t.Context(), who, 1)
		}
		callers.requireResults(arrival{"a", 0, nil}, arrival{"b", sec, nil}, arrival{"c", 2 * sec, nil}, arrival{"d", 60 * sec, nil})
		require.EqualValues(t, 4, paced.Stats().Allowed)
	})
}
