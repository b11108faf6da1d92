package rows

import (
	"time"

	"golang.org/x/time/rate"

	"github.com/weir-go/weir/dev/bench/internal/measure"
	"github.com/weir-go/weir/limiter"
)

// ampleBurst is a burst that is never used up in a comparison.
const ampleBurst = 1 << 30

// limiters compares the token bucket with x/time/rate, the usual choice.
func limiters() []Row {
	return []Row{
		{
			Name: "limiter: allowed", Main: true, Serial: 0.60, Threads: 0.55,
			Weir: bucketTakes(limiter.PerSecond(1e8)), Peer: rateAllows(1e8),
			Why: "weir returns five numbers and keeps the rate exactly; x/time/rate returns a bool, and rounds",
		},
		{
			Name: "limiter: allowed, 10/3 ns per token", Serial: 0.60, Threads: 0.55,
			Weir: bucketTakes(limiter.PerSecond(3e8)), Peer: rateAllows(3e8),
			Why: "if a token does not take a whole number of nanoseconds, weir converts the time with a 128-bit multiplication, and x/time/rate rounds",
		},
		{
			Name: "limiter: refused", Main: true, Serial: 0.50, Threads: 0.30,
			Weir: bucketRefuses(), Peer: rateRefuses(),
			Why: "a refusal of weir writes nothing to memory; x/time/rate locks",
		},
		{
			Name: "limiter: allowed, against the clock", Main: true, Serial: 1.9,
			Weir: bucketTakes(limiter.PerSecond(1e8)), Peer: sinceFloor(), Floor: true,
			Why: "the part above 1 is the cost of the token bucket itself",
		},
		{
			Name: "limiter: refused, against the clock", Serial: 1.5,
			Weir: bucketRefuses(), Peer: sinceFloor(), Floor: true,
			Why: "the part above 1 is the cost of the token bucket itself",
		},
	}
}

func bucketTakes(r limiter.Rate) Side {
	return Side{"TokenBucket.Take", "one CAS; returns five numbers; exact in the long run", func() measure.Loop {
		b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: r, Burst: ampleBurst})
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
	return Side{"TokenBucket.Take", "empty; returns how long to wait", func() measure.Loop {
		b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Per(1, time.Hour), Burst: 1})
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
	return Side{"x/time/rate Allow", "a token bucket under a mutex; returns a bool", func() measure.Loop {
		l := rate.NewLimiter(rate.Limit(perSecond), ampleBurst)
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
	return Side{"x/time/rate Allow", "empty; returns a bool", func() measure.Loop {
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
