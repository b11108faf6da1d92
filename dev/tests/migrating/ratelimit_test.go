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

// A rate of 64 per second, with times that are multiples of 1/64 s, is exact in float64.
func TestTokenBucketDecidesLikeRateLimiter(t *testing.T) {
	t0 := time.Now()
	peer := rate.NewLimiter(64, 10)
	own := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(64), Burst: 10})
	random, at, allowed := rand.New(rand.NewPCG(1, 2)), t0, 0
	for range 10_000 {
		at = at.Add(time.Duration(random.IntN(6)) * time.Second / 64)
		n := 1 + random.IntN(5)
		want := peer.AllowN(at, n)
		require.Equalf(t, want, own.TakeAt(at, n).OK, "%d at %v", n, at.Sub(t0))
		require.Equal(t, int(peer.TokensAt(at)), own.TakeAt(at, 0).Remaining)
		if want {
			allowed++
		}
	}
	require.Greater(t, allowed, 1000)
	require.Less(t, allowed, 9000)
}

func TestHandlersAnswerLikeRateLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
		peer, own := rateHandler(rateLimit(), next), bucketHandler(bucketLimit(), next)
		for n := range 200 {
			time.Sleep(time.Duration(n%5) * 3 * time.Millisecond)
			want, got := sendRequest(t, peer), sendRequest(t, own)
			require.Equal(t, want.Code, got.Code)
			if got.Code == http.StatusTooManyRequests {
				require.Equal(t, "1", got.Header().Get("Retry-After"))
			}
		}
	})
}

func TestARateOfZeroLikeRateLimiter(t *testing.T) {
	peer, own, t0 := rateOfZero(), bucketOfZero(), time.Now()
	for range 1000 {
		t0 = t0.Add(24 * time.Hour)
		require.False(t, peer.AllowN(t0, 1))
		require.False(t, own.TakeAt(t0, 1).OK)
	}
	require.Equal(t, limiter.Never, own.TakeAt(t0, 1).RetryAfter)
}

func TestARateOfZeroWithABurstLikeRateLimiter(t *testing.T) {
	peer, own, t0 := tenCalls(), tenTokens(), time.Now()
	for n := range 1000 {
		t0 = t0.Add(24 * time.Hour)
		require.Equal(t, n < 10, peer.AllowN(t0, 1))
		require.Equal(t, n < 10, own.TakeAt(t0, 1).OK)
	}
}

func TestABurstOfZeroStopsAndStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit, bucket := rateLimit(), bucketLimit()
		limit.SetBurst(0)
		require.NoError(t, bucket.SetBurst(limiter.Off))
		time.Sleep(time.Hour)
		require.False(t, limit.Allow())
		require.False(t, bucket.Take(1).OK)

		limit.SetBurst(10)
		require.NoError(t, bucket.SetBurst(10))
		time.Sleep(time.Second)
		require.True(t, limit.Allow())
		require.True(t, bucket.Take(1).OK)

		require.Error(t, bucket.SetRate(limiter.PerSecond(0)))
	})
}

func sendRequest(t *testing.T, h http.Handler) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody))
	return w
}

func TestWaitsLikeRateLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var peer, own []time.Duration
		note := func(list *[]time.Duration) func(context.Context) error {
			return func(context.Context) error { *list = append(*list, time.Since(start)); return nil }
		}
		limit, bucket := rateLimit(), bucketLimit()
		done := make(chan struct{})
		go func() {
			for range 30 {
				_ = rateSend(t.Context(), limit, note(&peer))
			}
			close(done)
		}()
		for range 30 {
			require.NoError(t, bucketSend(t.Context(), bucket, note(&own)))
		}
		<-done
		for n := range own {
			require.InDeltaf(t, peer[n], own[n], 2, "call %d, in ns", n)
		}
	})
}

func TestBothFailAtOnceIfTheDeadlineIsTooEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		limit, bucket := rateLimit(), bucketLimit()
		require.True(t, limit.AllowN(time.Now(), 10))
		require.True(t, bucket.Take(10).OK)
		send := func(context.Context) error { return nil }

		peer, own := rateSend(ctx, limit, send), bucketSend(ctx, bucket, send)
		require.NoError(t, ctx.Err())
		require.NotErrorIs(t, peer, context.DeadlineExceeded)
		require.ErrorIs(t, own, context.DeadlineExceeded)
		require.ErrorIs(t, own, limiter.ErrLimited)
	})
}

func TestReservationsLikeRateLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit, bucket := rateLimit(), bucketLimit()
		for n := range 15 {
			peer, err := rateReserve(limit)
			require.NoError(t, err)
			own, err := bucketReserve(bucket)
			require.NoError(t, err)
			require.InDeltaf(t, peer.Delay(), own.Delay, 2, "reservation %d, in ns", n)
		}
	})
}

func TestOnlyTheDelayOfRateLimiterDecreases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit, bucket := rate.NewLimiter(1, 1), limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: 1})
		require.True(t, limit.Allow())
		require.True(t, bucket.Take(1).OK)
		peer, own := limit.Reserve(), bucket.Reserve(1, limiter.Never)
		time.Sleep(400 * time.Millisecond)
		require.Equal(t, 600*time.Millisecond, peer.Delay())
		require.Equal(t, time.Second, own.Delay)
	})
}

// reserveAll takes the whole burst of 10, and then makes two reservations of 5 tokens at a rate of
// 10.
func reserveAll(t *testing.T) (peer *rate.Limiter, peerReservations [2]*rate.Reservation, own *limiter.TokenBucket, ownReservations [2]*limiter.Reservation) {
	t.Helper()
	peer, own = rate.NewLimiter(10, 10), limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(10), Burst: 10})
	require.True(t, peer.AllowN(time.Now(), 10))
	require.True(t, own.Take(10).OK)
	for n := range 2 {
		peerReservations[n], ownReservations[n] = peer.ReserveN(time.Now(), 5), own.Reserve(5, limiter.Never)
	}
	return peer, peerReservations, own, ownReservations
}

func TestBothReturnAllTokensOfTheLastReservation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer, peerReservations, own, ownReservations := reserveAll(t)
		peerReservations[1].Cancel()
		ownReservations[1].Refund(5)
		require.Equal(t, -5.0, peer.Tokens())
		require.Equal(t, -5.0, own.Tokens())
	})
}

func TestBothKeepTheTokensOfAnEarlierReservation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer, peerReservations, own, ownReservations := reserveAll(t)
		peerReservations[0].Cancel()
		ownReservations[0].Refund(5)
		require.Equal(t, -10.0, peer.Tokens())
		require.Equal(t, -10.0, own.Tokens())
	})
}

func TestOnlyRateLimiterCreditsASecondCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer, peerReservations, own, ownReservations := reserveAll(t)
		peerReservations[1].Cancel()
		peerReservations[1].Cancel()
		ownReservations[1].Refund(5)
		ownReservations[1].Refund(5)
		require.Equal(t, 5.0, peer.Tokens(), "10 tokens too many: the other reservation is still valid")
		require.Equal(t, -5.0, own.Tokens())
	})
}

func TestOnlyRateLimiterChargesACancelledWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer, own := rate.NewLimiter(1, 1), limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: 1})
		require.True(t, peer.Allow())
		require.True(t, own.Take(1).OK)
		ctx, cancel := context.WithCancel(t.Context())
		waited := make(chan time.Duration, 2)
		start := time.Now()
		go func() { _ = peer.Wait(ctx) }()
		go func() { _ = own.Wait(ctx, 1) }()
		time.Sleep(time.Millisecond) // both wait before the next callers join
		go func() { _ = peer.Wait(t.Context()); waited <- time.Since(start) }()
		time.Sleep(time.Millisecond)
		cancel()
		require.Equal(t, 2*time.Second, (<-waited).Round(10*time.Millisecond))

		ahead, leave := context.WithCancel(t.Context())
		require.True(t, own.Take(1).OK)
		again := time.Now()
		go func() { _ = own.Wait(ahead, 1) }()
		time.Sleep(time.Millisecond)
		go func() { _ = own.Wait(t.Context(), 1); waited <- time.Since(again) }()
		time.Sleep(time.Millisecond)
		leave()
		require.Equal(t, time.Second, (<-waited).Round(10*time.Millisecond))
	})
}

func TestABurstOfZero(t *testing.T) {
	require.False(t, rate.NewLimiter(5, 0).Allow())
	require.True(t, limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(5)}).Take(5).OK, "the default burst: the tokens of one second")
	require.False(t, limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(5), Burst: limiter.Off}).Take(1).OK)
}
