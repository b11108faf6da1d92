package rows

import (
	"time"

	"golang.org/x/time/rate"

	"github.com/weir-go/weir/bench/internal/measure"
	"github.com/weir-go/weir/limiter"
)

// plenty is a burst that no comparison uses up.
const plenty = 1 << 30

// limiters compares ours with the limiter that most would pick.
func limiters() []Row {
	return []Row{
		{
			Name: "limiter: allowed", Main: true, Serial: 0.60, Threads: 0.55, Writes: []Write{Swap},
			Weir: bucketTakes(limiter.PerSecond(1e8)), Peer: rateAllows(1e8),
			Why: "ours answers with five numbers and keeps the rate exactly; x/time/rate answers yes or no, and rounds",
		},
		{
			Name: "limiter: allowed, 10/3 ns a token", Serial: 0.60, Threads: 0.55, Writes: []Write{Swap},
			Weir: bucketTakes(limiter.PerSecond(3e8)), Peer: rateAllows(3e8),
			Why: "where a token does not take a whole number of nanoseconds, ours converts time by a 128-bit multiplication, and x/time/rate rounds",
		},
		{
			Name: "limiter: refused", Main: true, Serial: 0.50, Threads: 0.30,
			Weir: bucketRefuses(), Peer: rateRefuses(),
			Why: "a refusal of ours writes nothing; x/time/rate locks",
		},
		{
			Name: "limiter: allowed, by the clock", Main: true, Serial: 1.9,
			Weir: bucketTakes(limiter.PerSecond(1e8)), Peer: sinceFloor(), Floor: true,
			Why: "what is above 1 is all that the bucket itself costs",
		},
		{
			Name: "limiter: refused, by the clock", Serial: 1.5,
			Weir: bucketRefuses(), Peer: sinceFloor(), Floor: true,
			Why: "what is above 1 is all that the bucket itself costs",
		},
	}
}

func bucketTakes(r limiter.Rate) Side {
	return Side{"TokenBucket.Take", "one CAS; five numbers; exact in the long run", func() measure.Loop {
		b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: r, Burst: plenty})
		return func(n int) (right int) {
			for range n {
				if b.Take(1).OK {
					right++
				}
			}
			return right
		}
	}}
}

func bucketRefuses() Side {
	return Side{"TokenBucket.Take", "empty; says how long to wait", func() measure.Loop {
		b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerHour(1), Burst: 1})
		b.Take(1)
		return func(n int) (right int) {
			for range n {
				if !b.Take(1).OK {
					right++
				}
			}
			return right
		}
	}}
}

func rateAllows(perSecond float64) Side {
	return Side{"x/time/rate Allow", "a token bucket under a mutex; yes or no", func() measure.Loop {
		l := rate.NewLimiter(rate.Limit(perSecond), plenty)
		return func(n int) (right int) {
			for range n {
				if l.Allow() {
					right++
				}
			}
			return right
		}
	}}
}

func rateRefuses() Side {
	return Side{"x/time/rate Allow", "empty; no", func() measure.Loop {
		l := rate.NewLimiter(rate.Every(time.Hour), 1)
		l.Allow()
		return func(n int) (right int) {
			for range n {
				if !l.Allow() {
					right++
				}
			}
			return right
		}
	}}
}
