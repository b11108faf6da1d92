package rows

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/weir-go/weir/bench/internal/measure"
	"github.com/weir-go/weir/limiter"
)

// keyed compares limiters that have a bucket for each of many keys, all of them in use.
func keyed(keys int) []Row {
	return []Row{
		{
			Name: fmt.Sprintf("keyed, %d live keys: throttled", keys), Main: true, Serial: 0.50,
			Weir: groupTakes(keys), Peer: throttledTakes(keys),
			Why: "what is kept of a key lies anywhere in memory; throttled follows a pointer from its map to each key's word, and looks twice",
		},
		{
			Name: fmt.Sprintf("keyed, %d live keys: sync.Map", keys), Weir: groupTakes(keys), Peer: syncMapTakes(keys),
			Why: "a sync.Map of rate.Limiter is what is mostly written by hand; it never forgets a key",
		},
	}
}

// quota is how fast tokens come to each of so many keys, and how many there are at most: so many that none is refused.
// Where there are many keys a token takes an hour, so that all stay in use; a hot one needs too many tokens for that,
// since throttled counts the time that all of them take in nanoseconds.
func quota(keys int) (every time.Duration, burst int) {
	if keys == 1 {
		return time.Second, plenty
	}
	return time.Hour, 1 << 20
}

func groupTakes(keys int) Side {
	return Side{"limiter.Keyed.Take", "a token bucket a key, of bounded number, in 64 shards with a mutex each", func() measure.Loop {
		every, burst := quota(keys)
		g := limiter.NewGroup(limiter.GroupConfig[string]{Rate: limiter.Every(every), Burst: burst, MaxKeys: 2 * keys})
		return walk(keys, func(name string) bool { return g.Get(name).Take(1).OK })
	}}
}

func throttledTakes(keys int) Side {
	return Side{"throttled RateLimitCtx", "GCRA on its map in memory, without a bound on the number of keys", func() measure.Loop {
		l, ctx := throttledLimiter(quota(keys)), context.Background()
		return walk(keys, func(name string) bool {
			limited, _, err := l.RateLimitCtx(ctx, name, 1)
			return !limited && err == nil
		})
	}}
}

func syncMapTakes(keys int) Side {
	return Side{"sync.Map of x/time/rate", "a limiter a key, without a bound on their number", func() measure.Loop {
		every, burst := quota(keys)
		var limiters sync.Map
		return walk(keys, func(name string) bool {
			l, found := limiters.Load(name)
			if !found {
				l, _ = limiters.LoadOrStore(name, rate.NewLimiter(rate.Every(every), burst))
			}
			return l.(*rate.Limiter).Allow()
		})
	}}
}

// walk returns a loop that takes from one key after the other. Before it does, it takes once from every key, in random
// order, as keys come in life: so what is kept of them lies anywhere in memory, while the names, which a request would
// bring with it, are at hand.
func walk(keys int, take func(name string) bool) measure.Loop {
	names := make([]string, keys)
	for i := range names {
		names[i] = fmt.Sprint("user:", i)
	}
	for _, i := range rand.Perm(keys) {
		if !take(names[i]) {
			panic("rows: the first request of a key was refused")
		}
	}
	return measure.Walk(keys, 1, func(i int) bool { return take(names[i]) })
}
