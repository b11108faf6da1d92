package scale

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"

	"github.com/weir-go/weir/dev/bench/internal/fit"
	"github.com/weir-go/weir/dev/bench/internal/measure"
	"github.com/weir-go/weir/limiter"
)

// ampleBurst is a burst that is never used up in an experiment.
const ampleBurst = 1 << 30

// keys varies the number of keys of a keyed limiter. The map of throttled takes too much memory for
// the largest size.
func (t timer) keys() Experiment {
	return Experiment{
		File: "keys", Title: "A decision on one of n live keys", X: "live keys", Y: "ns per decision", Sizes: powersOfTen(1, 10_000_000),
		Lines: []Line{
			{Name: "limiter.Group", Says: fit.Constant, Cost: t.groupKeys},
			{Name: "throttled's map", Says: fit.Constant, Upto: 1_000_000, Cost: t.throttledKeys},
		},
		Why: "A decision hashes the key, locks one of 64 shards and reads one or two cache lines of an open-addressed table, whatever its size. " +
			"The growth comes from caches: the hash spreads the keys over all of the memory.",
	}
}

func (t timer) groupKeys(keys int) (float64, error) {
	g := limiter.NewGroup(limiter.GroupConfig[int]{Rate: limiter.PerSecond(1), Burst: ampleBurst, MaxKeys: 2 * keys})
	for key := range keys {
		g.Get(key).Take(1)
	}
	return t.quickest(measure.Walk(keys, 1, func(key int) bool { return g.Get(key).Take(1).OK }))
}

func (t timer) throttledKeys(keys int) (float64, error) {
	store, err := memstore.NewCtx(0)
	if err != nil {
		return 0, err
	}
	l, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{MaxRate: throttled.PerDuration(1, time.Second), MaxBurst: ampleBurst})
	if err != nil {
		return 0, err
	}
	names, ctx := make([]string, keys), context.Background()
	for i := range names {
		names[i] = fmt.Sprint(i)
	}
	take := func(key int) bool {
		limited, _, err := l.RateLimitCtx(ctx, names[key], 1)
		return !limited && err == nil
	}
	for _, key := range rand.Perm(keys) {
		take(key)
	}
	return t.quickest(measure.Walk(keys, 1, take))
}
