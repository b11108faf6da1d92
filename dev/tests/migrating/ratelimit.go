package migrating

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strconv"

	"golang.org/x/time/rate"

	"github.com/weir-go/weir/limiter"
)

//readme:rate-before
func rateLimit() *rate.Limiter { return rate.NewLimiter(rate.Limit(50), 10) }

func rateHandler(limit *rate.Limiter, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !limit.Allow() {
			http.Error(w, "too many requests", http.StatusTooManyRequests)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func rateSend(ctx context.Context, limit *rate.Limiter, send func(context.Context) error) error {
	if err := limit.Wait(ctx); err != nil {
		return err
	}
	return send(ctx)
}

//readme:end

//readme:rate-after
func bucketLimit() *limiter.TokenBucket {
	return limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(50), Burst: 10})
}

func bucketHandler(limit limiter.Limiter, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if took := limit.Take(1); !took.OK {
			w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(took.RetryAfter.Seconds()))))
			http.Error(w, "too many requests", http.StatusTooManyRequests)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func bucketSend(ctx context.Context, limit limiter.WaitLimiter, send func(context.Context) error) error {
	if err := limit.Wait(ctx, 1); err != nil {
		return err // matches context.DeadlineExceeded if the deadline comes first
	}
	return send(ctx)
}

//readme:end

//readme:rate-reserve
func rateReserve(limit *rate.Limiter) (*rate.Reservation, error) {
	r := limit.Reserve()
	if !r.OK() {
		return nil, errors.New("more than the burst")
	}
	return r, nil // sleep r.Delay(), or r.Cancel()
}

func bucketReserve(limit *limiter.TokenBucket) (*limiter.Reservation, error) {
	r := limit.Reserve(1, limiter.Never) // or the longest useful wait
	if !r.OK {
		return nil, errors.New("more than the burst, or another caller waits")
	}
	return r, nil // sleep r.Delay, or r.Refund(1)
}

//readme:end

//readme:rate-zero

// rateOfZero refuses every call. tenCalls allows ten calls, and none after them.
func rateOfZero() *rate.Limiter { return rate.NewLimiter(0, 0) }
func tenCalls() *rate.Limiter   { return rate.NewLimiter(0, 10) }

// bucketOfZero refuses every call, whatever the rate is.
func bucketOfZero() *limiter.TokenBucket {
	return limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: limiter.Off})
}

// tenTokens allows ten calls, and the next in 292 years.
func tenTokens() *limiter.TokenBucket {
	return limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Per(1, limiter.Never), Burst: 10})
}

//readme:end
