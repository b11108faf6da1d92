package main

import (
	"net/http"
	"time"

	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/platinummonkey/go-concurrency-limits/core"
	"github.com/platinummonkey/go-concurrency-limits/limit"
	limiters "github.com/platinummonkey/go-concurrency-limits/limiter"
	"github.com/platinummonkey/go-concurrency-limits/strategy"

	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/weirhttp"
)

// guard is the middleware in front of the handler.
type guard struct {
	name string
	wrap func(http.Handler) (http.Handler, error)
}

// guards returns the guards in the order of the table. All but the first keep the documented
// defaults of their libraries, except for a limit, a bound of the queue and its target.
func guards() []guard {
	return []guard{
		{"none", func(h http.Handler) (http.Handler, error) { return h, nil }},
		{"weir, fixed: Limit 10, no queue", shedHandler(inflight.Config{Limit: servers})},
		{"weir, fixed: Limit 10, queue with Target 20ms", shedHandler(inflight.Config{Limit: servers, MaxWaiters: 1000, Queue: queue})},
		{"weir, fixed: the same, oldest first", shedHandler(inflight.Config{Limit: servers, MaxWaiters: 1000, Queue: oldestFirst})},
		{"weir, adaptive, queue with Target 20ms", shedHandler(inflight.Config{Adaptive: true, MaxWaiters: 1000, Queue: queue})},
		{"weir, adaptive, the same, Interval 100ms", shedHandler(inflight.Config{Adaptive: true, MaxWaiters: 1000, Queue: shortInterval})},
		{"failsafe-go adaptive limiter", func(h http.Handler) (http.Handler, error) {
			return failsafehttp.NewHandler(h, adaptivelimiter.NewWithDefaults[*http.Response]()), nil
		}},
		{"failsafe-go adaptive limiter, queue 2 to 3", func(h http.Handler) (http.Handler, error) {
			return failsafehttp.NewHandler(h, adaptivelimiter.NewBuilder[*http.Response]().WithQueueing(2, 3).Build()), nil
		}},
		{"go-concurrency-limits, Vegas", vegasHandler},
		{"go-concurrency-limits, Gradient2", gradient2Handler},
	}
}

var (
	queue         = inflight.Queue{Target: 20 * time.Millisecond}
	shortInterval = inflight.Queue{Target: 20 * time.Millisecond, Interval: 100 * time.Millisecond}
	oldestFirst   = inflight.Queue{Target: 20 * time.Millisecond, OldestFirst: true}
)

func shedHandler(c inflight.Config) func(http.Handler) (http.Handler, error) {
	return func(h http.Handler) (http.Handler, error) {
		return weirhttp.Shed(inflight.New(c), weirhttp.ShedConfig{})(h), nil
	}
}

func vegasHandler(h http.Handler) (http.Handler, error) {
	l, err := limiters.NewDefaultLimiterWithDefaults("vegas", strategy.NewSimpleStrategy(servers), limit.NoopLimitLogger{}, core.EmptyMetricRegistryInstance)
	return limitedHandler(h, l), err
}

// gradient2Handler has the windows of NewDefaultLimiterWithDefaults.
func gradient2Handler(h http.Handler) (http.Handler, error) {
	l, err := limiters.NewDefaultLimiter(
		limit.NewDefaultGradient2Limit("gradient2", limit.NoopLimitLogger{}, core.EmptyMetricRegistryInstance),
		int64(time.Second), int64(time.Second), int64(100*time.Microsecond), 100,
		strategy.NewSimpleStrategy(servers), limit.NoopLimitLogger{}, core.EmptyMetricRegistryInstance,
	)
	return limitedHandler(h, l), err
}

// limitedHandler refuses requests that the limiter has no token for, as the library's gRPC
// interceptors do.
func limitedHandler(h http.Handler, l core.Limiter) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, ok := l.Acquire(r.Context())
		if !ok {
			http.Error(w, "limited", http.StatusServiceUnavailable)
			return
		}
		h.ServeHTTP(w, r)
		if r.Context().Err() != nil {
			token.OnDropped()
			return
		}
		token.OnSuccess()
	})
}
