package migrating

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"

	"github.com/weir-go/weir/limiter"
)

// A rate of 64 a second and times that are whole parts of it are exact in float64 too.
func TestBucketDecidesAsRateLimiter(t *testing.T) {
	t0 := time.Unix(0, 0)
	theirs := rate.NewLimiter(64, 10)
	ours := limiter.NewTokenBucketAt(limiter.TokenBucketConfig{Rate: limiter.PerSecond(64), Burst: 10}, t0)
	random, at, admitted := rand.New(rand.NewPCG(1, 2)), t0, 0
	for range 10_000 {
		at = at.Add(time.Duration(random.IntN(6)) * time.Second / 64)
		n := 1 + random.IntN(5)
		want := theirs.AllowN(at, n)
		require.Equalf(t, want, ours.TakeAt(at, n).OK, "%d at %v", n, at.Sub(t0))
		require.InDelta(t, theirs.TokensAt(at), ours.TokensAt(at), 1e-6)
		if want {
			admitted++
		}
	}
	require.Greater(t, admitted, 1000)
	require.Less(t, admitted, 9000)
}

func TestHandlersAnswerAlike(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
		theirs, ours := rateHandler(rateLimit(), next), bucketHandler(bucketLimit(), next)
		for n := range 200 {
			time.Sleep(time.Duration(n%5) * 3 * time.Millisecond)
			want, got := answer(t, theirs), answer(t, ours)
			require.Equal(t, want.Code, got.Code)
			if got.Code == http.StatusTooManyRequests {
				require.Equal(t, "1", got.Header().Get("Retry-After"))
			}
		}
	})
}

func answer(t *testing.T, h http.Handler) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody))
	return w
}

func TestWaitsAlike(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var theirs, ours []time.Duration
		note := func(list *[]time.Duration) func(context.Context) error {
			return func(context.Context) error { *list = append(*list, time.Since(start)); return nil }
		}
		limit, bucket := rateLimit(), bucketLimit()
		done := make(chan struct{})
		go func() {
			for range 30 {
				_ = rateSend(t.Context(), limit, note(&theirs))
			}
			close(done)
		}()
		for range 30 {
			require.NoError(t, bucketSend(t.Context(), bucket, note(&ours)))
		}
		<-done
		for n := range ours {
			require.InDeltaf(t, theirs[n], ours[n], 2, "call %d, in ns", n)
		}
	})
}

func TestADeadlineThatCannotBeMetFailsAtOnceInBoth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		limit, bucket := rateLimit(), bucketLimit()
		require.True(t, limit.AllowN(time.Now(), 10))
		require.True(t, bucket.Take(10).OK)
		send := func(context.Context) error { return nil }

		theirs, ours := rateSend(ctx, limit, send), bucketSend(ctx, bucket, send)
		require.NoError(t, ctx.Err())
		require.NotErrorIs(t, theirs, context.DeadlineExceeded)
		require.ErrorIs(t, ours, context.DeadlineExceeded)
		require.ErrorIs(t, ours, limiter.ErrLimited)
	})
}

func TestReservationsAlike(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit, bucket := rateLimit(), bucketLimit()
		for n := range 15 {
			theirs, err := rateReserve(limit)
			require.NoError(t, err)
			ours, err := bucketReserve(bucket)
			require.NoError(t, err)
			require.InDeltaf(t, theirs.Delay(), ours.Delay, 2, "reservation %d, in ns", n)
		}
	})
}

func TestADelayOfOursStandsAndTheirsRunsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit, bucket := rate.NewLimiter(1, 1), limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: 1})
		require.True(t, limit.Allow())
		require.True(t, bucket.Take(1).OK)
		theirs, ours := limit.Reserve(), bucket.Reserve(1, limiter.Never)
		time.Sleep(400 * time.Millisecond)
		require.Equal(t, 600*time.Millisecond, theirs.Delay())
		require.Equal(t, time.Second, ours.Delay)
	})
}

// reserved takes the whole burst of 10 and reserves 5 and 5 of the next second, at a rate of 10.
func reserved(t *testing.T) (theirs *rate.Limiter, their [2]*rate.Reservation, ours *limiter.TokenBucket, our [2]*limiter.Reservation) {
	t.Helper()
	theirs, ours = rate.NewLimiter(10, 10), limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(10), Burst: 10})
	require.True(t, theirs.AllowN(time.Now(), 10))
	require.True(t, ours.Take(10).OK)
	for n := range 2 {
		their[n], our[n] = theirs.ReserveN(time.Now(), 5), ours.Reserve(5, limiter.Never)
	}
	return theirs, their, ours, our
}

func TestTheLastReservationComesBackWholeInBoth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		theirs, their, ours, our := reserved(t)
		their[1].Cancel()
		require.True(t, our[1].Cancel())
		require.Equal(t, -5.0, theirs.Tokens())
		require.Equal(t, -5.0, ours.Tokens())
	})
}

func TestAnEarlierReservationIsOwedToTheLaterOneInBoth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		theirs, their, ours, our := reserved(t)
		their[0].Cancel()
		require.True(t, our[0].Cancel())
		require.Equal(t, -10.0, theirs.Tokens())
		require.Equal(t, -10.0, ours.Tokens())
	})
}

func TestCancellingTwiceCreditsTwiceInTheirsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		theirs, their, ours, our := reserved(t)
		their[1].Cancel()
		their[1].Cancel()
		require.True(t, our[1].Cancel())
		require.False(t, our[1].Cancel())
		require.Equal(t, 5.0, theirs.Tokens(), "10 more than are due: the other reservation still stands")
		require.Equal(t, -5.0, ours.Tokens())
	})
}

func TestWhoGivesUpWaitingLeavesADebtInTheirsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		theirs, ours := rate.NewLimiter(1, 1), limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: 1})
		require.True(t, theirs.Allow())
		require.True(t, ours.Take(1).OK)
		ctx, cancel := context.WithCancel(t.Context())
		waited := make(chan time.Duration, 2)
		start := time.Now()
		go func() { _ = theirs.Wait(ctx) }()
		go func() { _ = ours.Wait(ctx, 1) }()
		time.Sleep(time.Millisecond) // both wait, and others come behind them
		go func() { _ = theirs.Wait(t.Context()); waited <- time.Since(start) }()
		time.Sleep(time.Millisecond)
		cancel()
		require.Equal(t, 2*time.Second, (<-waited).Round(10*time.Millisecond))

		ahead, leave := context.WithCancel(t.Context())
		require.True(t, ours.Take(1).OK)
		again := time.Now()
		go func() { _ = ours.Wait(ahead, 1) }()
		time.Sleep(time.Millisecond)
		go func() { _ = ours.Wait(t.Context(), 1); waited <- time.Since(again) }()
		time.Sleep(time.Millisecond)
		leave()
		require.Equal(t, time.Second, (<-waited).Round(10*time.Millisecond))
	})
}

func TestABurstOfZero(t *testing.T) {
	require.False(t, rate.NewLimiter(5, 0).Allow())
	require.True(t, limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(5)}).Take(5).OK, "the default: those of a second")
	require.False(t, limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(5), Burst: limiter.Off}).Take(1).OK)
}
