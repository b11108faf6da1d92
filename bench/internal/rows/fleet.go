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

	"github.com/weir-go/weir/bench/internal/measure"
	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/limiter"
)

// FleetModes lists how many callers ask for decisions on a Redis at once.
func FleetModes() []measure.Mode {
	return []measure.Mode{measure.Serial, measure.Goroutines8, measure.Goroutines64}
}

// ample is more permits a second, and at once, than anybody takes who asks Redis for each.
const ample = 1_000_000

// Fleet lists the comparisons of decisions on a Redis. Each caller has a key of its own, but where a row is about one key.
// With no Redis the rows can be looked at, but not run.
func Fleet(r *Redis) []Row {
	bucket := r.takes("a token bucket a key; decisions that are asked for at once share one call of a script",
		fleet.TokenBucket{Rate: limiter.PerSecond(ample), Burst: ample}, 0, true, apart)
	return []Row{
		{
			Name: "fleet: token bucket", Goroutines8: 1 / 1.15, Goroutines64: 1 / 2.,
			Weir: bucket, Peer: r.redisRate("GCRA; a call of a script a decision", redis_rate.PerSecond(ample), true, apart),
			Why: "both decide by the server's clock; ours says when to come back to the microsecond, and pipelines what many ask for at once",
		},
		{
			Name: "fleet: hot key, leased", Goroutines8: 1 / 20., Goroutines64: 1 / 20.,
			Weir: r.takes("one key; takes up to 1,000 permits from Redis in advance", fleet.TokenBucket{Rate: limiter.PerSecond(100 * ample), Burst: 100 * ample}, 1000, true, together),
			Peer: r.redisRate("one key; a call of a script a decision", redis_rate.PerSecond(ample), true, together),
			Why:  "what was taken in advance is handed out without a round trip; the limit is then kept to the lease, which is stated",
		},
		{
			Name: "fleet: refused key", Goroutines8: 1 / 20., Goroutines64: 1 / 20.,
			Weir: r.takes("one key that is empty; remembers until when", fleet.TokenBucket{Rate: limiter.PerHour(1)}, 0, false, together),
			Peer: r.redisRate("one key that is empty; asks Redis each time", redis_rate.PerHour(1), false, together),
			Why:  "what Redis has refused until a moment need not be asked for again before",
		},
		{
			Name: "fleet: throttled", Weir: bucket, Peer: r.throttled(),
			Why: "throttled reads, reckons and swaps: two round trips, and again where another was faster",
		},
		{
			Name: "fleet: fixed window, ulule",
			Weir: r.fixed(), Peer: r.ulule(),
			Why: "ulule's script is an INCR and a PTTL, and its windows begin with a key's first call; ours is the script of all limits, with windows on the clock's grid, looks and refunds, and one call of it a decision",
		},
		{
			Name: "fleet: an EVALSHA of nothing", Floor: true, Weir: bucket, Peer: r.nothing(),
			Why: "a round trip and an empty script, one a decision; with many callers ours needs fewer round trips than decisions",
		},
	}
}

// keying gives the keys of one loop, which each caller runs for itself.
type keying func() (key string)

// apart gives each caller a key of its own.
func apart() keying {
	const names = 1000
	var next atomic.Int64
	return func() string { return fmt.Sprint("user:", next.Add(1)%names) }
}

// together gives all of them the same.
func together() keying { return func() string { return "user:1" } }

// asking returns a loop that asks about a key until one answer is not the one that is measured.
func asking(keys keying, ask func(ctx context.Context, key string) (right bool)) measure.Loop {
	return func(n int) (right int) {
		key, ctx := keys(), context.Background()
		for right < n && ask(ctx, key) {
			right++
		}
		return right
	}
}

// takes is ours: a bucket that gives leases of up to so many permits, which lets through or refuses.
func (r *Redis) takes(does string, b fleet.TokenBucket, lease int, ok bool, keys func() keying) Side {
	return Side{"fleet.TokenBucket", does, func() measure.Loop {
		l := r.limiter(b, lease)
		all := keys()
		if !ok {
			_, _ = l.Take(context.Background(), all(), 1) // the one that it has
		}
		return asking(all, func(ctx context.Context, key string) bool {
			got, err := l.Take(ctx, key, 1)
			return err == nil && got.OK == ok
		})
	}}
}

// limiter makes one of ours.
func (r *Redis) limiter(limit fleet.Limit, lease int) *fleet.Limiter {
	return fleet.NewLimiter(r.name(), fleet.Config{Link: r.link, Limits: []fleet.Limit{limit}, OnOutage: fleet.FailError, MaxLease: lease})
}

func (r *Redis) redisRate(does string, limit redis_rate.Limit, ok bool, keys func() keying) Side {
	return Side{"redis_rate Allow", does, func() measure.Loop {
		l, prefix, all := redis_rate.NewLimiter(r.client), r.name(), keys()
		if !ok {
			_, _ = l.Allow(context.Background(), prefix+all(), limit)
		}
		return asking(func() string { return prefix + all() }, func(ctx context.Context, key string) bool {
			got, err := l.Allow(ctx, key, limit)
			return err == nil && (got.Allowed == 1) == ok
		})
	}}
}

func (r *Redis) throttled() Side {
	return Side{"throttled RateLimitCtx", "GCRA by compare-and-swap", func() measure.Loop {
		store, err := goredisstore.NewCtx(r.client, r.name())
		must(err)
		l, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{MaxRate: throttled.PerSec(ample), MaxBurst: ample})
		must(err)
		l.SetMaxCASAttemptsLimit(unlimitedCAS)
		return asking(apart(), func(ctx context.Context, key string) bool {
			limited, _, err := l.RateLimitCtx(ctx, key, 1)
			return !limited && err == nil
		})
	}}
}

func (r *Redis) fixed() Side {
	return Side{"fleet.FixedWindow", "a counter a window, by one script", func() measure.Loop {
		l := r.limiter(fleet.FixedWindow{Limit: plenty, Window: time.Second}, 0)
		return asking(apart(), func(ctx context.Context, key string) bool {
			got, err := l.Take(ctx, key, 1)
			return err == nil && got.OK
		})
	}}
}

func (r *Redis) ulule() Side {
	return Side{"ulule Get", "a counter a window, by one script", func() measure.Loop {
		store, err := ululeredis.NewStoreWithOptions(r.client, ulule.StoreOptions{Prefix: r.name()})
		must(err)
		l := ulule.New(store, ulule.Rate{Period: time.Second, Limit: plenty})
		return asking(apart(), func(ctx context.Context, key string) bool {
			got, err := l.Get(ctx, key)
			return err == nil && !got.Reached
		})
	}}
}

func (r *Redis) nothing() Side {
	return Side{"EVALSHA", "an empty script", func() measure.Loop {
		script := redis.NewScript("return 1")
		return asking(apart(), func(ctx context.Context, key string) bool {
			return script.Run(ctx, r.client, []string{key}).Err() == nil
		})
	}}
}
