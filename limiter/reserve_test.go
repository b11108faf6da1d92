package limiter_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
)

// tick is the interval between tokens at ten per second.
const tick = 100 * ms

// reserve makes a reservation at a time and checks its delay.
func reserve(t *testing.T, b *limiter.TokenBucket, at time.Duration, n int, want time.Duration) *limiter.Reservation {
	t.Helper()
	r := b.ReserveAt(start.Add(at), n, limiter.Never)
	require.True(t, r.OK, "Reserve(%d) at %s", n, at)
	require.Equal(t, want, at+r.Delay, "Reserve(%d) at %s", n, at)
	return r
}

func TestReserveReturnsTheDelay(t *testing.T) { // scenario 21
	b := newBucket(limiter.PerSecond(10), 2)
	reserve(t, b, 0, 2, 0)
	reserve(t, b, 0, 2, 2*tick)
	reserve(t, b, 3*tick, 2, 4*tick)
	require.InDelta(t, -1, b.TokensAt(start.Add(3*tick)), 1e-9)
	runSteps(t, b, step{3 * tick, 1, "refused 0/2 retry 200ms reset 300ms"}, step{3 * tick, 0, "refused 0/2 retry 100ms reset 300ms"})
}

func TestReserveMoreThanTheBurstReservesNothing(t *testing.T) { // scenario 22
	b := newBucket(limiter.PerSecond(10), 2)
	for _, n := range []int{3, math.MaxInt, -1} {
		r := b.ReserveAt(start, n, limiter.Never)
		require.False(t, r.OK)
		require.Equal(t, limiter.Never, r.RetryAfter)
		require.False(t, r.CancelAt(start))
		require.Equal(t, 2, b.TakeAt(start, 0).Remaining)
	}
	require.True(t, b.ReserveAt(start, 0, limiter.Never).OK)
}

func TestReserveWithinALimit(t *testing.T) { // scenario 25
	b := newBucket(limiter.PerSecond(10), 1)
	require.Zero(t, b.ReserveAt(start, 1, tick).Delay)
	require.Equal(t, tick, b.ReserveAt(start, 1, tick).Delay)
	r := b.ReserveAt(start, 1, tick)
	require.False(t, r.OK)
	require.Equal(t, "refused 0/1 retry 100ms reset 200ms", resultText(r.Result))
	require.False(t, r.CancelAt(start))
	reserve(t, b, tick, 1, 2*tick)
}

func TestCancelGivesBackTokensUntilTheTimeToAct(t *testing.T) { // scenario 23
	b := newBucket(limiter.PerSecond(10), 2)
	reserve(t, b, 0, 2, 0)
	r := reserve(t, b, 0, 2, 2*tick)
	require.True(t, r.CancelAt(start.Add(tick)))
	reserve(t, b, tick, 2, 2*tick)

	b = newBucket(limiter.PerSecond(10), 2)
	reserve(t, b, 0, 2, 0)
	r = reserve(t, b, 0, 2, 2*tick)
	require.False(t, r.CancelAt(start.Add(3*tick)), "the time to act has passed")
	reserve(t, b, 3*tick, 2, 4*tick)
}

// Scenario 24: later reservations keep their times, so their tokens are not given back.
func TestCancelKeepsTokensPromisedToLaterReservations(t *testing.T) {
	b := newBucket(limiter.PerSecond(10), 4)
	runSteps(t, b, step{0, 4, "ok"})
	first := reserve(t, b, 0, 3, 3*tick)
	reserve(t, b, 0, 1, 4*tick)
	last := reserve(t, b, 0, 1, 5*tick)
	require.True(t, last.CancelAt(start.Add(tick)))
	require.True(t, first.CancelAt(start.Add(tick)))
	reserve(t, b, tick, 3, 5*tick)

	b = newBucket(limiter.PerSecond(10), 1)
	runSteps(t, b, step{0, 1, "ok"})
	first = reserve(t, b, 0, 1, 1*tick)
	reserve(t, b, 0, 1, 2*tick)
	reserve(t, b, 0, 1, 3*tick)
	require.True(t, first.CancelAt(start))
	reserve(t, b, 0, 1, 4*tick) // not at the same time as the third
}

// In whatever order reservations are cancelled, the tokens taken and those of the other
// reservations never exceed the limit.
func TestCancelsGiveBackNoPromisedTokens(t *testing.T) {
	b := newBucket(limiter.PerSecond(1), 10)
	runSteps(t, b, step{0, 10, "ok"})
	first, second, third := reserve(t, b, 0, 10, 10*sec), reserve(t, b, 0, 10, 20*sec), reserve(t, b, 0, 3, 23*sec)
	require.True(t, second.CancelAt(start))
	require.True(t, first.CancelAt(start))
	require.Zero(t, third.RetryAfter)
	runSteps(t, b, step{23 * sec, 8, "refused 7/10 retry 1s reset 3s"}, step{23 * sec, 7, "ok"})

	// A later reservation with an earlier time to act does not replace the last promise.
	b = newBucket(limiter.PerSecond(1), 10)
	runSteps(t, b, step{0, 10, "ok"})
	first, second = reserve(t, b, 0, 10, 10*sec), reserve(t, b, 0, 10, 20*sec)
	reserve(t, b, 0, 3, 23*sec)
	require.True(t, second.CancelAt(start))
	between := reserve(t, b, 0, 1, 17*sec)
	require.True(t, first.CancelAt(start))
	require.True(t, between.CancelAt(start))
	runSteps(t, b, step{23 * sec, 8, "refused 7/10 retry 1s reset 3s"}, step{23 * sec, 7, "ok"})

	// The last reservation gives back all its tokens.
	b = newBucket(limiter.PerSecond(1), 10)
	runSteps(t, b, step{0, 10, "ok"})
	reserve(t, b, 0, 10, 10*sec)
	last := reserve(t, b, 0, 5, 15*sec)
	require.True(t, last.CancelAt(start))
	reserve(t, b, 0, 5, 15*sec)
}

func TestCancelAtOnceGivesBackAllTokens(t *testing.T) {
	b := newBucket(limiter.PerSecond(10), 5)
	r := reserve(t, b, 0, 2, 0)
	runSteps(t, b, step{0, 3, "ok"}) // without a promise
	require.True(t, r.CancelAt(start))
	runSteps(t, b, step{0, 2, "ok 0/5 reset 500ms"})
}

func TestCancelTwiceGivesBackOnce(t *testing.T) { // scenario 26
	b := newBucket(limiter.PerSecond(10), 10)
	runSteps(t, b, step{0, 10, "ok"})
	reserve(t, b, 0, 5, 5*tick)
	r := reserve(t, b, 0, 5, 10*tick)
	require.True(t, r.CancelAt(start))
	for range 10 {
		require.False(t, r.CancelAt(start))
	}
	require.InDelta(t, -5, b.TokensAt(start), 1e-9)
}

func TestCancelAfterTheRateHasChanged(t *testing.T) {
	b := newBucket(limiter.PerSecond(10), 2)
	reserve(t, b, 0, 2, 0)
	first := reserve(t, b, 0, 2, 2*tick)
	second := reserve(t, b, 0, 1, 3*tick)
	require.NoError(t, b.SetRateAt(start, limiter.PerSecond(1)))
	require.NoError(t, b.SetBurstAt(start.Add(1), 3))
	require.True(t, first.CancelAt(start.Add(1)))
	require.InDelta(t, -2, b.TokensAt(start), 1e-6, "one of its two tokens is promised to the second reservation")
	require.True(t, second.CancelAt(start.Add(1)))
	require.InDelta(t, -1, b.TokensAt(start), 1e-6)
}

func TestDebtIsBoundedByTheLifeOfABucket(t *testing.T) {
	b := newBucket(limiter.Per(1, 10*year), 1)
	for i := range 8 {
		reserve(t, b, 0, 1, time.Duration(i)*10*year)
	}
	for range 30 {
		b.ReserveAt(start, 1, limiter.Never)
	}
	r := b.ReserveAt(start, 1, limiter.Never)
	require.False(t, r.OK)
	require.Equal(t, limiter.Never, r.RetryAfter)
	runSteps(t, b, step{math.MinInt64, 1, "refused"}, step{0, 1, "refused"}, step{math.MaxInt64, 1, "refused"})
}

// A reservation that is given up before its time to act gives its tokens back, also if the bucket
// has changed.
func TestARefundOfAReservation(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(b *limiter.TokenBucket)
		refunds []int
		tokens  float64
	}{
		"all":                {func(*limiter.TokenBucket) {}, []int{4, 4}, 0},
		"in parts, or less":  {func(*limiter.TokenBucket) {}, []int{1, 3}, -1},
		"a part":             {func(*limiter.TokenBucket) {}, []int{3}, -1},
		"after a change":     {func(b *limiter.TokenBucket) { _ = b.SetRate(limiter.PerSecond(2)) }, []int{4}, 0},
		"of which B took 10": {func(b *limiter.TokenBucket) { b.Reserve(10, limiter.Never) }, []int{4}, -14},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: 10})
			require.True(t, b.Take(10).OK)
			r := b.Reserve(4, limiter.Never)
			c.change(b)
			for _, n := range c.refunds {
				r.Refund(n)
			}
			require.Equal(t, c.tokens, b.Tokens(), name)
		})
	}
}
