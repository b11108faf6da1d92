package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/goredisstore.v9"
	ulule "github.com/ulule/limiter/v3"
	ululeredis "github.com/ulule/limiter/v3/drivers/store/redis"

	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/limiter"
)

// contender is a limiter that is measured.
type contender struct {
	name string
	take func(ctx context.Context, caller int) error
}

// plenty of permits a second, and as many at once are more than anybody here takes.
const plenty = 1_000_000

var errSurprise = errors.New("the answer is not the one that is measured")

// want is an error unless the answer is what it should be.
func want(yes bool, err error) error {
	if err == nil && !yes {
		return errSurprise
	}
	return err
}

func contenders(ctx context.Context, client redis.UniversalClient) ([]contender, error) {
	theirs, err := rivals(client)
	if err != nil {
		return nil, err
	}
	ours, err := ours(ctx, client)
	return append(theirs, ours...), err
}

// rivals are the others; the first is what all are compared with.
func rivals(client redis.UniversalClient) ([]contender, error) {
	rate := redis_rate.NewLimiter(client)
	store, err := goredisstore.NewCtx(client, "throttled:")
	if err != nil {
		return nil, err
	}
	gcra, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{MaxRate: throttled.PerSec(plenty), MaxBurst: plenty})
	if err != nil {
		return nil, err
	}
	counters, err := ululeredis.NewStore(client)
	if err != nil {
		return nil, err
	}
	windows := ulule.New(counters, ulule.Rate{Period: time.Second, Limit: plenty})
	nothing := redis.NewScript("return 1")
	keys := names()
	return []contender{
		{"redis_rate v10.0.1, GCRA", func(ctx context.Context, i int) error {
			r, err := rate.Allow(ctx, keys[i], redis_rate.PerSecond(plenty))
			return want(err == nil && r.Allowed == 1, err)
		}},
		{"throttled v2.15.0, GCRA by compare-and-swap", func(ctx context.Context, i int) error {
			limited, _, err := gcra.RateLimitCtx(ctx, keys[i], 1)
			return want(!limited, err)
		}},
		{"ulule v3.11.2, fixed window", func(ctx context.Context, i int) error {
			r, err := windows.Get(ctx, keys[i])
			return want(!r.Reached, err)
		}},
		{"a bare EVALSHA of nothing", func(ctx context.Context, i int) error {
			return nothing.Run(ctx, client, []string{keys[i]}).Err()
		}},
		{"redis_rate, one refused key", func(ctx context.Context, _ int) error {
			r, err := rate.Allow(ctx, "refused", redis_rate.PerHour(1))
			return want(err == nil && (r.Allowed == 0 || r.Remaining == 0), err)
		}},
	}, nil
}

// ours are weir's.
func ours(ctx context.Context, client redis.UniversalClient) ([]contender, error) {
	link, err := fleet.Connect(ctx, "rivals", client, fleet.LinkConfig{Timeout: 5 * time.Second})
	if err != nil {
		return nil, err
	}
	closed := fleet.Config{Away: fleet.Error}
	leased := fleet.Config{Away: fleet.Error, MaxLease: 100}
	plain := fleet.Bucket{Rate: limiter.PerSecond(plenty), Burst: plenty}
	keys := names()
	taker := func(l interface {
		Take(context.Context, string, int) (fleet.Result, error)
	}, ok bool,
	) func(context.Context, int) error {
		return func(ctx context.Context, i int) error {
			r, err := l.Take(ctx, keys[i], 1)
			return want(r.OK == ok, err)
		}
	}
	refused := fleet.NewTokenBucket(link, "refused", fleet.Bucket{Rate: limiter.PerHour(1)}, closed)
	if _, err := refused.Take(ctx, "k", 1); err != nil {
		return nil, err
	}
	fixed := fleet.NewFixedWindow(link, "fixed", fleet.Fixed{Limit: plenty * 10, Span: time.Second}, closed)
	return []contender{
		{"weir TokenBucket", taker(fleet.NewTokenBucket(link, "bucket", plain, closed), true)},
		{"weir FixedWindow", taker(fixed, true)},
		{"weir TokenBucket, MaxLease 100", taker(fleet.NewTokenBucket(link, "leased", plain, leased), true)},
		{"weir TokenBucket, one refused key", func(ctx context.Context, _ int) error {
			r, err := refused.Take(ctx, "k", 1)
			return want(!r.OK, err)
		}},
	}, nil
}

// names are the keys of the callers.
func names() (keys [64]string) {
	for i := range keys {
		keys[i] = fmt.Sprint("user:", 1000+i)
	}
	return keys
}
