package rows

import (
	"context"
	"time"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/dev/bench/internal/measure"
	"github.com/weir-go/weir/throttle"
)

// breakers compares the breaker with gobreaker, the usual choice.
func breakers() []Row {
	const oneReading = "rolling window of 10 × 1 s, opens at 50 % of at least 20 calls; one clock reading; panic-safe"
	twoReadings := breakerDo("the same with slow calls and a latency histogram; two clock readings", breaker.Config{SlowCall: time.Second, Latency: true})
	return []Row{
		{
			Name: "breaker: closed, success", Main: true, Serial: 0.32, Threads: 0.45,
			Weir: breakerDo(oneReading, breaker.Config{}), Peer: gobreakerExecute(),
			Why: "gobreaker locks twice and reads both clocks twice; neither side detects slow calls",
		},
		{
			Name: "breaker: closed, success, with latency", Main: true, Serial: 0.55, Threads: 0.55,
			Weir: twoReadings, Peer: gobreakerExecute(),
			Why: "weir also has a histogram of all latencies and the slow-call rule",
		},
		{
			Name: "breaker: closed, failure", Main: true, Serial: 0.60, Threads: 0.60,
			Weir: breakerFails(), Peer: gobreakerFails(),
			Why: "both sides judge the failure rate in the window at each failure; weir also looks for a Retry-After and keeps the last failures",
		},
		{
			Name: "breaker: open", Main: true, Serial: 0.60, Threads: 0.30,
			Weir: breakerRefuses(), Peer: gobreakerRefuses(),
			Why: "weir checks the context, and its error says which breaker refused, why, and until when; gobreaker takes no context and returns a fixed error",
		},
		{
			Name: "breaker: success, 1 reading, against the clock", Main: true, Serial: 1.8,
			Weir: breakerDo(oneReading, breaker.Config{}), Peer: sinceFloor(), Floor: true,
			Why: "the part above 1 is the cost of the breaker itself",
		},
		{
			Name: "breaker: success, 2 readings, against the clock", Serial: 3.0,
			Weir: twoReadings, Peer: sinceFloor(), Floor: true,
			Why: "the two readings alone are 2",
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

// breakerFails makes a breaker with one success in its window that opens only if all calls failed.
// So it judges every failure and never opens.
func breakerFails() Side {
	return Side{"breaker.Do", "rolling window of 10 × 1 s; judges each failure, and opens if all of 20 calls failed", func() measure.Loop {
		b := breaker.New("bench", breaker.Config{FailureRate: 1, FailureRun: breaker.Off})
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
	return Side{"breaker.Do", "open for an hour; returns an error with the reason and the time", func() measure.Loop {
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

func breakerPermitsOfLast() Side {
	return Side{"Breaker.Allow + Record", "window of the last 100 calls, under a mutex; one clock reading", func() measure.Loop {
		b := breaker.New("bench", breaker.Config{LastCalls: 100})
		return func(n int) (right int) {
			for range n {
				if permit, err := b.Allow(); err == nil && permit.Record(context.Background(), nil, breaker.Success) {
					right++
				}
			}
			return right
		}
	}}
}

func throttleRun() Side {
	return Side{"Throttle.Run", "the throttling of Google's SRE book over a rolling window of 10 × 1 s", func() measure.Loop {
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
