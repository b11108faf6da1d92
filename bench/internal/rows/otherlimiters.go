package rows

import (
	"context"
	"math"
	"time"

	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"github.com/juju/ratelimit"
	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	ulule "github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/store/memory"
	uber "go.uber.org/ratelimit"

	"github.com/weir-go/weir/bench/internal/measure"
	"github.com/weir-go/weir/limiter"
)

// otherLimiters are for information.
func otherLimiters() []Row {
	ours := bucketTakes(limiter.PerSecond(1e9))
	return []Row{
		{
			Name: "limiter: failsafe-go, smooth", Weir: ours, Peer: failsafeSmooth(),
			Why: "an interval of 1 ns, which is over at each call; it allows no bursts and answers yes or no",
		},
		{
			Name: "limiter: uber ratelimit", Weir: bucketWaits(), Peer: uberTakes(),
			Why: "Take is its only verb, and waits; an interval of 1 ns, which is over at each call",
		},
		{
			Name: "limiter: juju", Weir: ours, Peer: jujuTakes(),
			Why: "a token bucket of ticks, under a mutex",
		},
		{
			Name: "keyed, one key: throttled", Weir: groupTakes(1), Peer: throttledTakes(1),
			Why: "throttled reads and swaps through its store: two looks at the map",
		},
		{
			Name: "keyed, one key: sethvargo", Weir: groupTakes(1), Peer: sethvargoTakes(),
			Why: "a fixed window of an hour: no time is converted, and no RetryAfter told",
		},
		{
			Name: "keyed, one key: ulule", Weir: groupTakes(1), Peer: ululeTakes(),
			Why: "a fixed window of an hour, under a lock a key, where ours is one a shard; makes the key's full name at each call",
		},
	}
}

func bucketWaits() Side {
	return Side{"TokenBucket.Wait", "one CAS; looks at the context", func() measure.Loop {
		b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1e9), Burst: plenty})
		ctx := context.Background()
		return func(n int) (right int) {
			for range n {
				if b.Wait(ctx, 1) == nil {
					right++
				}
			}
			return right
		}
	}}
}

func failsafeSmooth() Side {
	return Side{"failsafe-go TryAcquirePermit", "evenly spaced permits, under a mutex", func() measure.Loop {
		l := ratelimiter.NewSmooth[int](1e9, time.Second)
		return func(n int) (right int) {
			for range n {
				if l.TryAcquirePermit() {
					right++
				}
			}
			return right
		}
	}}
}

func uberTakes() Side {
	return Side{"uber ratelimit Take", "evenly spaced, with a slack of 10; one CAS", func() measure.Loop {
		l := uber.New(1e9)
		return func(n int) (right int) {
			for range n {
				if !l.Take().IsZero() {
					right++
				}
			}
			return right
		}
	}}
}

func jujuTakes() Side {
	return Side{"juju TakeAvailable", "a token bucket under a mutex", func() measure.Loop {
		b := ratelimit.NewBucket(time.Nanosecond, plenty)
		return func(n int) (right int) {
			for range n {
				right += int(b.TakeAvailable(1))
			}
			return right
		}
	}}
}

// unlimitedCAS keeps throttled from giving up a decision when others decide on the same key.
const unlimitedCAS = math.MaxInt32

// throttledLimiter is the GCRA limiter on its map in memory.
func throttledLimiter(every time.Duration, burst int) *throttled.GCRARateLimiterCtx {
	store, err := memstore.NewCtx(0)
	must(err)
	l, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{MaxRate: throttled.PerDuration(1, every), MaxBurst: burst})
	must(err)
	l.SetMaxCASAttemptsLimit(unlimitedCAS)
	return l
}

// sethvargoTakes has fewer tokens than its interval has nanoseconds: it refuses everything otherwise.
func sethvargoTakes() Side {
	return Side{"sethvargo memorystore Take", "an hour's tokens, under a mutex a key", func() measure.Loop {
		store, err := memorystore.New(&memorystore.Config{Tokens: plenty, Interval: time.Hour})
		must(err)
		ctx := context.Background()
		return func(n int) (right int) {
			for range n {
				if _, _, _, ok, err := store.Take(ctx, "user:1"); ok && err == nil {
					right++
				}
			}
			return right
		}
	}}
}

func ululeTakes() Side {
	return Side{"ulule memory Get", "an hour's requests, counted in a sync.Map", func() measure.Loop {
		l := ulule.New(memory.NewStore(), ulule.Rate{Period: time.Hour, Limit: plenty})
		ctx := context.Background()
		return func(n int) (right int) {
			for range n {
				if c, err := l.Get(ctx, "user:1"); err == nil && !c.Reached {
					right++
				}
			}
			return right
		}
	}}
}

// must is for configs that are written here.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
