package memory

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	"golang.org/x/time/rate"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
)

// Keyed returns the objects that are members of one collection, by key.
func Keyed(keys int) []Object {
	return []Object{
		{"limiter.Group, a live key of 8 bytes", keys, 0, groupOfInts},
		{"limiter.Group, a live key without its string", keys, 56, groupOfNames},
		{"throttled's map, a live key without its string", keys, 0, throttledMap},
		{"sync.Map of x/time/rate, a live key without its string", keys, 0, syncMap},
		{"breaker.Group, a member", 1000, 1500, breakerGroup},
		{"weir.Group, a member with a limit", 1000, 1800, gateGroup},
	}
}

func groupOfInts(n int) func() any {
	return func() any {
		g := limiter.NewGroup(limiter.GroupConfig[int]{Rate: limiter.Per(1, time.Hour), Burst: 10, MaxKeys: 2 * n})
		for key := range n {
			g.Get(key).Take(1)
		}
		return g
	}
}

// addNames returns a function that adds n names to a new collection.
func addNames(n int, open func() (whole any, add func(name string))) func() any {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint("user:", i)
	}
	return func() any {
		whole, add := open()
		for _, name := range names {
			add(name)
		}
		return whole
	}
}

func groupOfNames(n int) func() any {
	return addNames(n, func() (any, func(string)) {
		g := limiter.NewGroup(limiter.GroupConfig[string]{Rate: limiter.Per(1, time.Hour), Burst: 10, MaxKeys: 2 * n})
		return g, func(name string) { g.Get(name).Take(1) }
	})
}

func throttledMap(n int) func() any {
	return addNames(n, func() (any, func(string)) {
		store, err := memstore.NewCtx(0)
		if err != nil {
			panic(err)
		}
		l, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{MaxRate: throttled.PerHour(1), MaxBurst: 10})
		if err != nil {
			panic(err)
		}
		return l, func(name string) { _, _, _ = l.RateLimitCtx(context.Background(), name, 1) }
	})
}

func syncMap(n int) func() any {
	return addNames(n, func() (any, func(string)) {
		all := new(sync.Map)
		return all, func(name string) { all.Store(name, rate.NewLimiter(rate.Every(time.Hour), 10)) }
	})
}

func breakerGroup(n int) func() any {
	return func() any {
		g := breaker.NewGroup[int]("bench", breaker.GroupConfig{MaxSeries: breaker.Off})
		for key := range n {
			_ = g.Get(key).Run(context.Background(), succeed)
		}
		return g
	}
}

func gateGroup(n int) func() any {
	return func() any {
		g := weir.NewGroup[int]("bench", weir.GroupConfig{Gate: weir.Config{Rate: limiter.PerSecond(100)}, MaxSeries: breaker.Off})
		for key := range n {
			_ = g.Get(key).Run(context.Background(), succeed)
		}
		return g
	}
}
