package rows

import (
	"context"
	"time"

	"github.com/weir-go/weir/bench/internal/measure"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/throttle"
)

// breakers compares ours with the breaker that most would pick.
func breakers() []Row {
	const oneReading = "rolling 10 × 1 s, 20 calls and 50 % to trip; one reading of the clock; panic-safe"
	twoReadings := breakerDo("the same with slow calls and a latency histogram; two readings of the clock", breaker.Config{SlowCall: time.Second, Latency: true})
	return []Row{
		{
			Name: "breaker: closed, success", Main: true, Serial: 0.32, Threads: 0.45,
			Weir: breakerDo(oneReading, breaker.Config{}), Peer: gobreakerExecute(),
			Why: "gobreaker locks twice and reads both clocks twice; it cannot tell slow calls either way",
		},
		{
			Name: "breaker: closed, success, with latency", Main: true, Serial: 0.55, Threads: 0.55, Writes: []Write{Add},
			Weir: twoReadings, Peer: gobreakerExecute(),
			Why: "ours does more: a histogram of all latencies and the slow-call rule",
		},
		{
			Name: "breaker: closed, failure", Main: true, Serial: 0.50, Threads: 0.60, Writes: []Write{Add},
			Weir: breakerFails(), Peer: gobreakerFails(),
			Why: "both judge each failure by the rate in the window",
		},
		{
			Name: "breaker: open", Main: true, Serial: 0.60, Threads: 0.30,
			Weir: breakerRefuses(), Peer: gobreakerRefuses(),
			Why: "ours looks at the context first, and returns who refused, why and until when; gobreaker looks at none, and returns a bare error",
		},
		{
			Name: "breaker: success, 1 reading, by the clock", Main: true, Serial: 1.8,
			Weir: breakerDo(oneReading, breaker.Config{}), Peer: sinceFloor(), Floor: true,
			Why: "what is above 1 is all that the breaker itself costs",
		},
		{
			Name: "breaker: success, 2 readings, by the clock", Serial: 2.9,
			Weir: twoReadings, Peer: sinceFloor(), Floor: true,
			Why: "two readings are 2",
		},
	}
}

func breakerDo(does string, c breaker.Config) Side {
	return Side{"breaker.Do", does, func() measure.Loop {
		b := breaker.New("bench", c)
		ctx := context.Background()
		return func(n int) (right int) {
			for range n {
				if v, err := breaker.Do(ctx, b, succeed); err == nil {
					right += v
				}
			}
			return right
		}
	}}
}

// breakerFails has one success in its window, and opens only where all calls have failed: so it judges each failure
// and opens at none.
func breakerFails() Side {
	return Side{"breaker.Do", "rolling 10 × 1 s; judges each failure, and opens where all of 20 calls failed", func() measure.Loop {
		b := breaker.New("bench", breaker.Config{FailureRate: 1})
		ctx := context.Background()
		return func(n int) (right int) {
			right, _ = breaker.Do(ctx, b, succeed)
			for range n - 1 {
				if v, err := breaker.Do(ctx, b, fail); err != nil {
					right -= v
				}
			}
			return right
		}
	}}
}

func breakerRefuses() Side {
	return Side{"breaker.Do", "open for an hour; returns an error with reason and time", func() measure.Loop {
		b := breaker.New("bench", breaker.Config{})
		b.OpenFor(time.Hour)
		ctx := context.Background()
		return func(n int) (right int) {
			for range n {
				if v, err := breaker.Do(ctx, b, succeed); err != nil && v == 0 {
					right++
				}
			}
			return right
		}
	}}
}

func breakerPermits() Side {
	return Side{"Breaker.Allow + Record", "rolling 10 × 1 s; the two-step form", func() measure.Loop {
		return permits(breaker.Config{})
	}}
}

func breakerPermitsOfLast() Side {
	return Side{"Breaker.Allow + Record", "the last 100 calls, under a mutex; one reading of the clock", func() measure.Loop {
		return permits(breaker.Config{LastCalls: 100})
	}}
}

func permits(c breaker.Config) measure.Loop {
	b := breaker.New("bench", c)
	return func(n int) (right int) {
		for range n {
			if permit, err := b.Allow(); err == nil && permit.Record(breaker.Success) {
				right++
			}
		}
		return right
	}
}

func throttleRun() Side {
	return Side{"Throttle.Run", "the throttling of Google's SRE book on a rolling 10 × 1 s", func() measure.Loop {
		t := throttle.New("bench", throttle.Config{})
		ctx := context.Background()
		return func(n int) (right int) {
			for range n {
				if t.Run(ctx, succeedQuietly) == nil {
					right++
				}
			}
			return right
		}
	}}
}
