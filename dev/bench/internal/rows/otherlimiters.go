package rows

import (
	"context"
	"math"
	"time"

	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	uber "go.uber.org/ratelimit"

	"github.com/weir-go/weir/dev/bench/internal/measure"
	"github.com/weir-go/weir/limiter"
)

// otherLimiters returns rows without bounds.
func otherLimiters() []Row {
	return []Row{
		{
			Name: "limiter: uber ratelimit", Weir: bucketWaits(), Peer: uberTakes(),
			Why: "Take is the only method, and waits; an interval of 1 ns, so that no call waits",
		},
		{
			Name: "keyed, one key: sethvargo", Weir: groupTakes(1), Peer: sethvargoTakes(),
			Why: "a fixed window of one hour: sethvargo converts no time, and gives no time to retry",
		},
	}
}

func bucketWaits() Side {
	return Side{"TokenBucket.Wait", "one CAS; checks the context", func() measure.Loop {
		b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1e9), Burst: ampleBurst})
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

// unlimitedCAS makes throttled retry without a limit, so that it returns no error if other
// goroutines use the same key.
const unlimitedCAS = math.MaxInt32

// throttledLimiter returns the GCRA limiter with a map in memory.
func throttledLimiter(every time.Duration, burst int) *throttled.GCRARateLimiterCtx {
	store, err := memstore.NewCtx(0)
	must(err)
	l, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{MaxRate: throttled.PerDuration(1, every), MaxBurst: burst})
	must(err)
	l.SetMaxCASAttemptsLimit(unlimitedCAS)
	return l
}

// sethvargoTakes has fewer tokens than its interval has nanoseconds. With more, sethvargo refuses
// everything.
func sethvargoTakes() Side {
	return Side{"sethvargo memorystore Take", "the tokens of one hour, with one mutex per key", func() measure.Loop {
		store, err := memorystore.New(&memorystore.Config{Tokens: ampleBurst, Interval: time.Hour})
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

// must panics if a config of this package is invalid.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
