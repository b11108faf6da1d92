package rows

import (
	"context"
	"fmt"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"golang.org/x/time/rate"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/dev/bench/internal/measure"
	"github.com/weir-go/weir/limiter"
)

// gates compares calls that pass both a limiter and a breaker. It also compares a gate that has a
// bound on calls in flight with a gate that has none.
func gates() []Row {
	return []Row{
		{
			Name: "gate: success, 2 readings", Main: true, Serial: 0.40, Threads: 0.50,
			Weir: gateDo(), Peer: rateAndGobreaker(),
			Why: "weir reads the clock once for both limiter and breaker, and once more to detect a slow call",
		},
		{
			Name: "gate: success, failsafe-go", Main: true, Serial: 0.12, Threads: 0.12,
			Weir: gateDo(), Peer: failsafeBoth(),
			Why: "the executor of failsafe-go allocates per call and policy; it also supports retries and hedges, which weir does not",
		},
		{
			Name: "gate: MaxConcurrent, against none and half a reading", Serial: 1, Floor: true,
			Weir: gateInFlight(weir.Config{MaxConcurrent: 100}), Peer: gateAndReadings(weir.Config{}, 1),
			Why: "at a ratio of 1, a slot costs half a reading of the clock",
		},
		{
			Name: "gate: Rate and MaxConcurrent, against Rate and half a reading", Serial: 1, Floor: true,
			Weir: gateInFlight(weir.Config{MaxConcurrent: 100, Rate: limiter.PerSecond(1e8), Burst: ampleBurst}),
			Peer: gateAndReadings(weir.Config{Rate: limiter.PerSecond(1e8), Burst: ampleBurst}, 1),
			Why:  "at a ratio of 1, a slot costs half a reading of the clock",
		},
		{
			Name: "gate: Adaptive, against none and a reading", Serial: 1, Floor: true,
			Weir: gateInFlight(weir.Config{Adaptive: true}), Peer: gateAndReadings(weir.Config{}, 0),
			Why: "at a ratio of 1, a slot of an adaptive bound costs a reading of the clock. Of so many calls per second few are timed",
		},
	}
}

func gateInFlight(c weir.Config) Side {
	return Side{"weir.Do", "a gate with a bound on calls in flight", func() measure.Loop {
		g := weir.New("bench", c)
		ctx := context.Background()
		return func(n int) (right int) {
			for range n {
				if v, err := weir.Do(ctx, g, succeed); err == nil {
					right += v
				}
			}
			return right
		}
	}}
}

// gateAndReadings reads the clock only in calls whose number has no bit in common with mask.
func gateAndReadings(c weir.Config, mask int) Side {
	about := fmt.Sprintf("the same gate without a bound, and a reading of the clock with one call in %d", mask+1)
	return Side{"weir.Do, time.Since(epoch)", about, func() measure.Loop {
		g, epoch := weir.New("bench", c), time.Now()
		ctx := context.Background()
		return func(n int) (right int) {
			for i := range n {
				if i&mask == 0 && time.Since(epoch) < 0 {
					continue
				}
				if v, err := weir.Do(ctx, g, succeed); err == nil {
					right += v
				}
			}
			return right
		}
	}}
}

func gateDo() Side {
	return Side{"weir.Do", "token bucket and breaker with slow calls; two clock readings", func() measure.Loop {
		g := weir.New("bench", weir.Config{Rate: limiter.PerSecond(1e8), Burst: ampleBurst, Breaker: breaker.Config{SlowCall: time.Second}})
		ctx := context.Background()
		return func(n int) (right int) {
			for range n {
				if v, err := weir.Do(ctx, g, succeed); err == nil {
					right += v
				}
			}
			return right
		}
	}}
}

func rateAndGobreaker() Side {
	return Side{"x/time/rate Allow + gobreaker Execute", "three locks, three time.Now", func() measure.Loop {
		l, b := rate.NewLimiter(1e8, ampleBurst), rollingGobreaker(0.5)
		return func(n int) (right int) {
			for range n {
				if !l.Allow() {
					continue
				}
				if v, err := b.Execute(succeedBare); err == nil {
					right += v
				}
			}
			return right
		}
	}}
}

func failsafeBoth() Side {
	return Side{"failsafe.With(limiter, breaker).Get", "a bursty limiter and a time window", func() measure.Loop {
		executor := failsafe.With(ratelimiter.NewBursty[int](ampleBurst, time.Hour), failsafeTimed())
		return func(n int) (right int) {
			for range n {
				if v, err := executor.Get(succeedBare); err == nil {
					right += v
				}
			}
			return right
		}
	}}
}
