package limiter_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/sentinel"
	"github.com/weir-go/weir/limiter"
)

// callers is several callers that wait for one limiter in a synctest bubble.
type callers struct {
	t     *testing.T
	l     limiter.WaitLimiter
	began time.Time
	all   sync.WaitGroup
	mu    sync.Mutex
	log   []arrival
}

// arrival is the result of a wait and its time.
type arrival struct {
	who string
	at  time.Duration
	err error
}

func newCallers(t *testing.T, l limiter.WaitLimiter) *callers {
	return &callers{t: t, l: l, began: time.Now()}
}

// start starts a caller and returns once it waits in the queue or has returned.
func (l *callers) start(ctx context.Context, who string, n int) {
	l.all.Go(func() {
		err := l.l.Wait(ctx, n)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.log = append(l.log, arrival{who, time.Since(l.began), err})
	})
	synctest.Wait()
}

// servedFirst returns the result of the caller who, or nil if another one was served earlier. Callers
// that are served at the same time may report in any order.
func (l *callers) servedFirst(who string) *arrival {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.log {
		if a.who == who && a.at <= l.log[0].at {
			return &a
		}
	}
	return nil
}

// want waits for all callers and compares their results, in order.
func (l *callers) want(want ...arrival) {
	l.t.Helper()
	l.all.Wait()
	require.Equal(l.t, want, l.log)
}

func TestWaitServesInOrderOfArrival(t *testing.T) { // scenario 31
	synctest.Test(t, func(t *testing.T) {
		l := newCallers(t, limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: 5}))
		l.start(t.Context(), "all", 5)
		l.start(t.Context(), "first", 1)
		l.start(t.Context(), "big", 5)
		l.start(t.Context(), "last", 1)
		l.want(arrival{"all", 0, nil}, arrival{"first", 1 * sec, nil}, arrival{"big", 6 * sec, nil}, arrival{"last", 7 * sec, nil})
	})
}

func TestTakeIsRefusedWhileACallerWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: 3})
		l := newCallers(t, b)
		b.Take(2)
		l.start(t.Context(), "two", 2)
		require.Equal(t, "refused 0/3 retry 2s reset 4s", show(b.Take(1)), "the one token is for the waiter")
		require.Equal(t, "refused 0/3 retry 4s reset 4s", show(b.Take(3)))
		require.Equal(t, "refused 0/3 retry 1s reset 4s", show(b.Take(0)))
		l.want(arrival{"two", sec, nil})
		require.Equal(t, "refused 0/3 retry 1s reset 3s", show(b.Take(1)))
		time.Sleep(sec)
		require.True(t, b.Take(1).OK, "RetryAfter includes the waiters")
	})
}

func TestTakeWhileTheFirstWaiterIsServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerHour(1), Burst: 5})
		for range 50 {
			b.Take(5)
			l := newCallers(t, b)
			l.start(t.Context(), "head", 1)
			b.Refund(5) // enough for both, but the first waiter may not be awake yet
			taken := 1
			if r := b.Take(1); r.OK {
				taken++
			} else {
				require.EqualValues(t, 1, r.RetryAfter)
			}
			l.want(arrival{"head", 0, nil})
			require.Equal(t, 5-taken, b.Take(0).Remaining)
			b.Refund(5)
		}
	})
}

func TestNothingRemainsWhileACallerWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := limiter.WindowConfig{Limit: 3, Window: sec}
		w := limiter.NewSlidingLog(config)
		l := newCallers(t, w)
		w.Take(2)
		l.start(t.Context(), "two", 2)
		require.Equal(t, "refused 0/3 retry 1s reset 1s", show(w.Take(0)))
		require.Equal(t, "refused 0/3 retry 1s reset 1s", show(w.Take(1)))
		l.want(arrival{"two", sec, nil})
	})
}

func TestWaitTakesNothingForAContextThatIsDone(t *testing.T) { // scenario 28
	synctest.Test(t, func(t *testing.T) {
		b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: 1})
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		for range 50 {
			require.Equal(t, context.Canceled, b.Wait(cancelled, 1))
		}
		require.True(t, b.Take(1).OK)
	})
}

func TestWaitFailsAtOnceIfTheDeadlineIsTooEarly(t *testing.T) { // scenario 29
	synctest.Test(t, func(t *testing.T) {
		b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(10), Burst: 2})
		b.Take(2)
		ctx, cancel := context.WithTimeout(t.Context(), 100*ms)
		defer cancel()
		began := time.Now()
		err := b.Wait(ctx, 2)
		require.Zero(t, time.Since(began))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, limiter.ErrLimited)
		require.ErrorIs(t, err, sentinel.ErrRefused)
		var limited *limiter.LimitedError
		require.ErrorAs(t, err, &limited)
		require.Equal(t, 200*ms, limited.RetryAfter())
		require.EqualError(t, err, "limiter: deadline cannot be met (limit 2), retry in 200ms")

		require.NoError(t, b.Wait(ctx, 1), "a deadline that can just be met")
		require.Equal(t, 100*ms, time.Since(began))
	})
}

func TestWaitEndsWithTheContext(t *testing.T) { // scenario 30
	synctest.Test(t, func(t *testing.T) {
		b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: 3})
		l := newCallers(t, b)
		b.Take(3)
		ctx, cancel := context.WithCancel(t.Context())
		l.start(ctx, "impatient", 3)
		time.Sleep(2 * sec)
		cancel()
		l.want(arrival{"impatient", 2 * sec, context.Canceled})
		require.NoError(t, b.Wait(t.Context(), 2), "its tokens are still there")
		require.Equal(t, 2*sec, time.Since(l.began))
	})
}

func TestADeadlineDuringAWaitIsARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: 1})
		b.Take(1)
		ctx, cancel := context.WithTimeout(t.Context(), 1500*ms)
		defer cancel()
		l := newCallers(t, b)
		l.start(ctx, "unlucky", 1)
		require.NoError(t, b.SetRate(limiter.PerMinute(1)))
		l.all.Wait()
		require.Equal(t, 1500*ms, l.log[0].at)
		require.ErrorIs(t, l.log[0].err, context.DeadlineExceeded)
		require.ErrorIs(t, l.log[0].err, sentinel.ErrRefused)
		require.Zero(t, b.Take(0).RetryAfter, "the queue is not empty")
	})
}

func TestWaitAtMostGivesUpAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(10), Burst: 1})
		began := time.Now()
		require.NoError(t, b.WaitAtMost(t.Context(), 1, 0))
		for _, limit := range []time.Duration{-1, 0, 99 * ms} {
			err := b.WaitAtMost(t.Context(), 1, limit)
			require.ErrorIs(t, err, limiter.ErrLimited)
			require.NotErrorIs(t, err, context.DeadlineExceeded)
		}
		require.Zero(t, time.Since(began))
		require.NoError(t, b.WaitAtMost(t.Context(), 1, 100*ms))
		require.Equal(t, 100*ms, time.Since(began))
	})
}

func TestWaitRefusesTooManyTokensAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(10), Burst: 5})
		for _, n := range []int{6, -1} {
			err := b.Wait(t.Context(), n)
			require.EqualError(t, err, "limiter: more than the limit (limit 5)")
			var limited *limiter.LimitedError
			require.ErrorAs(t, err, &limited)
			require.Equal(t, limiter.Never, limited.RetryAfter())
		}
		require.NoError(t, b.Wait(t.Context(), 0))
		require.Equal(t, 5, b.Take(0).Remaining)

		never := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1e-300), Burst: 1})
		require.NoError(t, never.Wait(t.Context(), 1))
		require.EqualError(t, never.Wait(t.Context(), 1), "limiter: no tokens left (limit 1)", "it must not sleep forever")
	})
}

func TestWaitQueueIsBounded(t *testing.T) { // scenario 35
	synctest.Test(t, func(t *testing.T) {
		b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: 1, MaxWaiters: 2})
		l := newCallers(t, b)
		b.Take(1)
		l.start(t.Context(), "one", 1)
		l.start(t.Context(), "two", 1)
		err := b.Wait(t.Context(), 1)
		require.ErrorIs(t, err, limiter.ErrQueueFull)
		require.ErrorIs(t, err, limiter.ErrLimited)
		require.ErrorIs(t, err, sentinel.ErrRefused)
		l.want(arrival{"one", 1 * sec, nil}, arrival{"two", 2 * sec, nil})
	})
}

func TestRefundServesTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerHour(1), Burst: 3})
		l := newCallers(t, b)
		b.Take(3)
		l.start(t.Context(), "one", 1)
		l.start(t.Context(), "two", 2)
		b.Refund(3)
		l.want(arrival{"one", 0, nil}, arrival{"two", 0, nil})
	})
}

func TestTheNextWaiterIsServedWhenTheFirstLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: 3})
		l := newCallers(t, b)
		b.Take(3)
		head, leave := context.WithCancel(t.Context())
		l.start(head, "head", 3)
		l.start(t.Context(), "next", 1)
		time.Sleep(500 * ms)
		leave()
		l.want(arrival{"head", 500 * ms, context.Canceled}, arrival{"next", 1 * sec, nil})
	})
}

// Scenario 27: waiters that leave owe nothing.
func TestCancelledWaitersLeaveNoDebt(t *testing.T) {
	asTheyCame := func([]context.CancelFunc) {}
	atRandom := func(leave []context.CancelFunc) {
		rand.Shuffle(len(leave), func(i, j int) { leave[i], leave[j] = leave[j], leave[i] })
	}
	for _, c := range []struct {
		name    string
		waiters int
		order   func([]context.CancelFunc)
	}{
		{"first to last", 1000, asTheyCame},
		{"last to first", 1000, slices.Reverse[[]context.CancelFunc]},
		{"at random", 1000, atRandom},
		{"a hundred thousand at random", 100_000, atRandom},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { leaveInOrder(t, c.waiters, c.order) })
		})
	}
}

func leaveInOrder(t *testing.T, waiters int, order func([]context.CancelFunc)) {
	b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(10), Burst: 10})
	b.Take(10)
	var all sync.WaitGroup
	var served, left int
	var mu sync.Mutex
	leave := make([]context.CancelFunc, waiters)
	for i := range leave {
		ctx, cancel := context.WithCancel(t.Context())
		leave[i] = cancel
		all.Go(func() {
			err := b.Wait(ctx, 1)
			mu.Lock()
			defer mu.Unlock()
			if errors.Is(err, context.Canceled) {
				left++
			} else if err == nil {
				served++
			}
		})
	}
	synctest.Wait()
	time.Sleep(sec)
	synctest.Wait() // the tenth waiter is served at this moment
	order(leave)
	for _, cancel := range leave {
		cancel()
	}
	all.Wait()
	require.Equal(t, 10, served)
	require.Equal(t, waiters-10, left)
	began := time.Now()
	require.NoError(t, b.Wait(t.Context(), 1))
	require.LessOrEqual(t, time.Since(began), 100*ms)
}

// Stress on the real clock: callers wait and leave at random, and the tokens taken stay within the limit.
func TestWaitStress(t *testing.T) {
	b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(20_000), Burst: 10})
	began, served := time.Now(), 0
	var mu sync.Mutex
	together(50, func() bool {
		for i := range 40 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(20))*ms)
			n := 1 + i%3
			err := b.Wait(ctx, n)
			cancel()
			if err == nil {
				mu.Lock()
				served += n
				mu.Unlock()
			}
		}
		return true
	})
	require.LessOrEqual(t, float64(served), 11+20_000*time.Since(began).Seconds())
	require.NoError(t, b.WaitAtMost(t.Context(), 10, sec), "the queue is not empty")
}

// Scenario 4: no caller waits for a limiter that allows nothing.
func TestWaitWithABurstOfOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: limiter.Off})
		err := b.Wait(t.Context(), 1)
		require.ErrorIs(t, err, limiter.ErrLimited)
		refusal, ok := errors.AsType[*limiter.LimitedError](err)
		require.True(t, ok)
		require.Equal(t, limiter.Never, refusal.RetryAfter())
		require.Zero(t, b.Tokens())
		require.NoError(t, b.SetBurst(2))
		require.NoError(t, b.Wait(t.Context(), 2), "tokens are added at the rate")
		require.NoError(t, b.SetBurst(limiter.Off))
		require.False(t, b.Take(1).OK)
	})
}

func TestWaitWithTokensAllocatesNothing(t *testing.T) {
	b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: 1 << 20})
	ctx := t.Context()
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		if b.Wait(ctx, 1) != nil {
			t.Fatal("refused")
		}
	}))
}
