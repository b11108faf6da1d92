package rows

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/goredisstore.v9"
	ulule "github.com/ulule/limiter/v3"
	ululeredis "github.com/ulule/limiter/v3/drivers/store/redis"

	"github.com/weir-go/weir/dev/bench/internal/measure"
	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/limiter"
)

// FleetModes returns the modes for decisions on Redis.
func FleetModes() []measure.Mode {
	return []measure.Mode{measure.Serial, measure.Goroutines8, measure.Goroutines64}
}

// ampleRate is a rate and a burst above the number of decisions that Redis can make per second.
const ampleRate = 1_000_000

// Fleet returns the comparisons of decisions on Redis. Each caller has its own key, unless the row
// is about one key. With a nil Redis the rows can be listed but not run.
func Fleet(r *Redis) []Row {
	bucket := r.takes("one token bucket per key; concurrent decisions share one script call if a token takes whole µs",
		fleet.TokenBucket{Rate: limiter.PerSecond(ampleRate), Burst: ampleRate}, 0, true, separateKeys)
	return []Row{
		{
			Name: "fleet: token bucket", Goroutines8: 1 / 1.15, Goroutines64: 1 / 2.,
			Weir: bucket, Peer: r.redisRate("GCRA; one script call per decision", redis_rate.PerSecond(ampleRate), true, separateKeys),
			Why: "both use the server's clock; weir gives the time to retry to the microsecond, and pipelines concurrent decisions",
		},
		{
			Name: "fleet: hot key, leased", Goroutines8: 1 / 20., Goroutines64: 1 / 20.,
			Weir: r.takes("one key; leases up to 1,000 tokens from Redis in advance", fleet.TokenBucket{Rate: limiter.PerSecond(100 * ampleRate), Burst: 100 * ampleRate}, 1000, true, sameKey),
			Peer: r.redisRate("one key; one script call per decision", redis_rate.PerSecond(ampleRate), true, sameKey),
			Why:  "leased tokens need no round trip; the limit is then exact up to the size of the lease, as documented",
		},
		{
			Name: "fleet: refused key", Goroutines8: 1 / 20., Goroutines64: 1 / 20.,
			Weir: r.takes("one empty key; remembers until when it is refused", fleet.TokenBucket{Rate: limiter.Per(1, time.Hour)}, 0, false, sameKey),
			Peer: r.redisRate("one empty key; asks Redis each time", redis_rate.PerHour(1), false, sameKey),
			Why:  "Redis has said until when the key is refused, so weir does not ask again before that",
		},
		{
			Name: "fleet: throttled", Weir: bucket, Peer: r.throttled(),
			Why: "throttled reads, computes and swaps: two round trips, and more if another caller was faster",
		},
		{
			Name: "fleet: fixed window, ulule",
			Weir: r.fixed(), Peer: r.ulule(),
			Why: "ulule's script is an INCR and a PTTL, and a window begins with the first call of a key; weir runs its general script once per decision, with windows on a fixed grid and refunds",
		},
		{
			Name: "fleet: empty EVALSHA", Floor: true, Weir: bucket, Peer: r.redisFloor(),
			Why: "one round trip and one empty script per decision; with many callers weir needs fewer round trips than decisions",
		},
	}
}

// keySource returns the key of the next caller.
type keySource func() (key string)

// separateKeys returns a source that gives each caller its own key.
func separateKeys() keySource {
	const names = 1000
	var next atomic.Int64
	return func() string { return fmt.Sprint("user:", next.Add(1)%names) }
}

// sameKey returns a source that gives all callers the same key.
func sameKey() keySource { return func() string { return "user:1" } }

// askLoop returns a loop that asks about a key until an answer is not the expected one.
func askLoop(keys keySource, ask func(ctx context.Context, key string) (right bool)) measure.Loop {
	return func(n int) (right int) {
		key, ctx := keys(), context.Background()
		for right < n && ask(ctx, key) {
			right++
		}
		return right
	}
}

// takes returns weir's side: a token bucket with leases of up to the given number of tokens. ok is
// the expected decision.
func (r *Redis) takes(does string, b fleet.TokenBucket, lease int, ok bool, keys func() keySource) Side {
	return Side{"fleet.TokenBucket", does, func() measure.Loop {
		l := r.limiter(b, lease)
		all := keys()
		if !ok {
			_, _ = l.Take(context.Background(), all(), 1) // the only token
		}
		return askLoop(all, func(ctx context.Context, key string) bool {
			got, err := l.Take(ctx, key, 1)
			return err == nil && got.OK == ok
		})
	}}
}

// limiter returns a limiter with a new name.
func (r *Redis) limiter(limit fleet.Limit, lease int) *fleet.Limiter {
	return fleet.NewLimiter(r.newName(), fleet.Config{Link: r.link, Limits: []fleet.Limit{limit}, OnOutage: fleet.FailError, MaxLease: lease})
}

func (r *Redis) redisRate(does string, limit redis_rate.Limit, ok bool, keys func() keySource) Side {
	return Side{"redis_rate Allow", does, func() measure.Loop {
		l, prefix, all := redis_rate.NewLimiter(r.client), r.newName(), keys()
		if !ok {
			_, _ = l.Allow(context.Background(), prefix+all(), limit)
		}
		return askLoop(func() string { return prefix + all() }, func(ctx context.Context, key string) bool {
			got, err := l.Allow(ctx, key, limit)
			return err == nil && (got.Allowed == 1) == ok
		})
	}}
}

func (r *Redis) throttled() Side {
	return Side{"throttled RateLimitCtx", "GCRA by compare-and-swap", func() measure.Loop {
		store, err := goredisstore.NewCtx(r.client, r.newName())
		must(err)
		l, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{MaxRate: throttled.PerSec(ampleRate), MaxBurst: ampleRate})
		must(err)
		l.SetMaxCASAttemptsLimit(unlimitedCAS)
		return askLoop(separateKeys(), func(ctx context.Context, key string) bool {
			limited, _, err := l.RateLimitCtx(ctx, key, 1)
			return !limited && err == nil
		})
	}}
}

func (r *Redis) fixed() Side {
	return Side{"fleet.FixedWindow", "one counter per window, by one script", func() measure.Loop {
		l := r.limiter(fleet.FixedWindow{Limit: ampleBurst, Window: time.Second}, 0)
		return askLoop(separateKeys(), func(ctx context.Context, key string) bool {
			got, err := l.Take(ctx, key, 1)
			return err == nil && got.OK
		})
	}}
}

func (r *Redis) ulule() Side {
	return Side{"ulule Get", "one counter per window, by one script", func() measure.Loop {
		store, err := ululeredis.NewStoreWithOptions(r.client, ulule.StoreOptions{Prefix: r.newName()})
		must(err)
		l := ulule.New(store, ulule.Rate{Period: time.Second, Limit: ampleBurst})
		return askLoop(separateKeys(), func(ctx context.Context, key string) bool {
			got, err := l.Get(ctx, key)
			return err == nil && !got.Reached
		})
	}}
}

func (r *Redis) redisFloor() Side {
	return Side{"EVALSHA", "an empty script", func() measure.Loop {
		script := redis.NewScript("return 1")
		return askLoop(separateKeys(), func(ctx context.Context, key string) bool {
			return script.Run(ctx, r.client, []string{key}).Err() == nil
		})
	}}
}
