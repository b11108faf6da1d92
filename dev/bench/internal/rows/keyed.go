package rows

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/weir-go/weir/dev/bench/internal/measure"
	"github.com/weir-go/weir/limiter"
)

// keyed compares limiters with one bucket per key and many keys, all of them in use.
func keyed(keys int) []Row {
	return []Row{
		{
			Name: fmt.Sprintf("keyed, %d live keys: throttled", keys), Main: true, Serial: 0.50,
			Weir: groupTakes(keys), Peer: throttledTakes(keys),
			Why: "the state of a key can be anywhere in memory; throttled follows a pointer from its map to the state, and looks it up twice",
		},
		{
			Name: fmt.Sprintf("keyed, %d live keys: sync.Map", keys), Weir: groupTakes(keys), Peer: syncMapTakes(keys),
			Why: "a sync.Map of rate.Limiter is the usual handwritten solution; it never removes a key",
		},
	}
}

// quotaPerKey returns the time per token, and a burst so high that no call is refused. With many
// keys a token takes an hour, so that all keys stay in use. With one hot key it takes a second:
// that key needs a larger burst, and throttled counts the time for the whole burst in nanoseconds,
// which would overflow with an hour per token.
func quotaPerKey(keys int) (every time.Duration, burst int) {
	if keys == 1 {
		return time.Second, ampleBurst
	}
	return time.Hour, 1 << 20
}

func groupTakes(keys int) Side {
	return Side{"Group.Get + Take", "one token bucket per key, a bounded number of keys, in 64 shards with one mutex per shard", func() measure.Loop {
		every, burst := quotaPerKey(keys)
		g := limiter.NewGroup(limiter.GroupConfig[string]{Rate: limiter.Per(1, every), Burst: burst, MaxKeys: 2 * keys})
		return walkKeys(keys, func(name string) bool { return g.Get(name).Take(1).OK })
	}}
}

func throttledTakes(keys int) Side {
	return Side{"throttled RateLimitCtx", "GCRA on a map in memory, with an unbounded number of keys", func() measure.Loop {
		l, ctx := throttledLimiter(quotaPerKey(keys)), context.Background()
		return walkKeys(keys, func(name string) bool {
			limited, _, err := l.RateLimitCtx(ctx, name, 1)
			return !limited && err == nil
		})
	}}
}

func syncMapTakes(keys int) Side {
	return Side{"sync.Map of x/time/rate", "one limiter per key, with an unbounded number of keys", func() measure.Loop {
		every, burst := quotaPerKey(keys)
		var limiters sync.Map
		return walkKeys(keys, func(name string) bool {
			l, found := limiters.Load(name)
			if !found {
				l, _ = limiters.LoadOrStore(name, rate.NewLimiter(rate.Every(every), burst))
			}
			return l.(*rate.Limiter).Allow()
		})
	}}
}

// walkKeys returns a loop that takes a token of one key after the other. It first takes one token
// of every key in random order, like real requests, so that the states of the keys are spread over
// memory. The names lie in memory in the order of the loop, because a real request carries its own
// name.
func walkKeys(keys int, take func(name string) bool) measure.Loop {
	names := make([]string, keys)
	for i := range names {
		names[i] = fmt.Sprint("user:", i)
	}
	for _, i := range rand.Perm(keys) {
		if !take(names[i]) {
			panic("rows: the first call for a key was refused")
		}
	}
	return measure.Walk(keys, 1, func(i int) bool { return take(names[i]) })
}
