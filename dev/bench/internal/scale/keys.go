package scale

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"github.com/sony/gobreaker/v2"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/dev/bench/internal/measure"
	"github.com/weir-go/weir/limiter"
)

// ampleBurst is a burst that is never used up in an experiment.
const ampleBurst = 1 << 30

// keys varies the number of keys in use.
func (t timer) keys() Experiment {
	return Experiment{
		File: "keys", Title: "A call for one of n keys", X: "keys", Y: "ns per call", Sizes: powersOfTen(1_000_000),
		Lines: []Line{
			{Name: "limiter.Group", Cost: t.limiterKeys},
			{Name: "throttled's map", Cost: t.throttledKeys},
			{Name: "breaker.Group", Cost: t.breakerKeys},
			{Name: "weir.Group with a rate", Cost: t.gateKeys},
		},
		Why: "A call looks for its key in one of up to 256 tables, whatever their size. The growth comes from caches: the keys are all over the memory, " +
			"and a member of a group of breakers or gates is on several cache lines.",
	}
}

func (t timer) limiterKeys(keys int) (float64, error) {
	g := limiter.NewGroup(limiter.GroupConfig[int]{Rate: limiter.PerSecond(1), Burst: ampleBurst, MaxKeys: 2 * keys})
	return t.walk(keys, func(key int) bool { return g.Get(key).Take(1).OK })
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
	names, ctx := keyNames(keys), context.Background()
	return t.walk(keys, func(key int) bool {
		limited, _, err := l.RateLimitCtx(ctx, names[key], 1)
		return !limited && err == nil
	})
}

func (t timer) breakerKeys(keys int) (float64, error) {
	g, ctx := breaker.NewGroup[int]("bench", breaker.GroupConfig{MaxKeys: 2*keys + 1000}), context.Background()
	return t.walk(keys, func(key int) bool { return g.Get(key).Run(ctx, succeed) == nil })
}

func (t timer) gateKeys(keys int) (float64, error) {
	g, ctx := weir.NewGroup[int]("bench", weir.GroupConfig{
		MaxKeys: 2*keys + 1000, Gate: weir.Config{Rate: limiter.PerSecond(1e6), Burst: ampleBurst},
	}), context.Background()
	return t.walk(keys, func(key int) bool { return g.Get(key).Run(ctx, succeed) == nil })
}

// walk measures calls for one key after the other. It first calls every key in random order, like
// real requests, so that the states of the keys are spread over memory.
func (t timer) walk(keys int, call func(key int) bool) (float64, error) {
	for _, key := range rand.Perm(keys) {
		call(key)
	}
	return t.quickest(measure.Walk(keys, 1, call))
}

func succeed(context.Context) error { return nil }

// newKeys varies the number of keys of a full group that gets new ones.
func (t timer) newKeys() Experiment {
	return Experiment{
		File: "newkeys", Title: "A new key in a full group of n keys", X: "keys", Y: "ns per call", Sizes: []int{1000, 10_000, 100_000},
		Lines: []Line{
			{Name: "breaker.Group, all its members busy", Cost: t.keyAmongBusy},
			{Name: "breaker.Group, its members idle", Cost: t.churn},
			{Name: "an LRU of gobreakers", Cost: t.churnLRU},
		},
		Why: "If all members have calls in their windows, the new key has no breaker of its own, and the group looks only at a few members. " +
			"If they are idle, the new key replaces one that was not used for long.",
	}
}

// keyAmongBusy measures Get of keys that find no room.
func (t timer) keyAmongBusy(keys int) (float64, error) {
	g := breaker.NewGroup[int]("bench", breaker.GroupConfig{MaxKeys: keys, Breaker: breaker.Config{Window: time.Hour}})
	for key := 0; key < 2*keys; key++ {
		_ = g.Get(key).Run(context.Background(), succeed)
	}
	key := 0
	return t.quickest(func(n int) (right int) {
		for range n {
			key--
			if g.Get(key) != nil {
				right++
			}
		}
		return right
	})
}

// churn measures calls of keys that were not called for long.
func (t timer) churn(keys int) (float64, error) {
	const window = time.Millisecond // shorter than it takes to call all names
	g, names, ctx := breaker.NewGroup[string]("bench", breaker.GroupConfig{MaxKeys: keys, Breaker: breaker.Config{Window: window}}), keyNames(3*keys), context.Background()
	for _, name := range names {
		_ = g.Get(name).Run(ctx, succeed)
	}
	time.Sleep(2 * window)
	return t.quickest(measure.Walk(len(names), 1, func(i int) bool { return g.Get(names[i]).Run(ctx, succeed) == nil }))
}

// churnLRU does the same with a map and a list, as a service would write it.
func (t timer) churnLRU(keys int) (float64, error) {
	all, err := simplelru.NewLRU[string, *gobreaker.CircuitBreaker[int]](keys, nil)
	if err != nil {
		return 0, err
	}
	names := keyNames(3 * keys)
	call := func(i int) bool {
		b, ok := all.Get(names[i])
		if !ok {
			b = gobreaker.NewCircuitBreaker[int](gobreaker.Settings{Name: names[i], Interval: 10 * time.Second, BucketPeriod: time.Second})
			all.Add(names[i], b)
		}
		_, err := b.Execute(func() (int, error) { return 1, nil })
		return err == nil
	}
	for i := range names {
		call(i)
	}
	return t.quickest(measure.Walk(len(names), 1, call))
}

func keyNames(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprint("host-", i))
	}
	return names
}
