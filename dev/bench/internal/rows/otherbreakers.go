package rows

import (
	"time"

	"github.com/afex/hystrix-go/hystrix"
	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/go-kratos/aegis/circuitbreaker/sre"
	gozero "github.com/zeromicro/go-zero/core/breaker"
	"github.com/zeromicro/go-zero/core/logx"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/dev/bench/internal/measure"
)

// otherBreakers returns rows without bounds.
func otherBreakers() []Row {
	success := breakerDo("rolling window of 10 × 1 s; one clock reading", breaker.Config{})
	return []Row{
		{
			Name: "breaker: closed, failsafe-go's executor", Weir: success, Peer: failsafeGet(),
			Why: "the executor allocates an execution per call, with its attempts and results",
		},
		{
			Name: "breaker: open, failsafe-go's executor", Weir: breakerRefuses(), Peer: failsafeRefuses(),
			Why: "the executor also allocates for a refusal",
		},
		{
			Name: "breaker: two-step, failsafe-go, time window", Weir: breakerPermits(), Peer: failsafePermits("time window of 10 slices; not panic-safe in this form", failsafeTimed()),
			Why: "both sides without a function argument",
		},
		{
			Name: "breaker: two-step, failsafe-go, call window", Weir: breakerPermitsOfLast(), Peer: failsafePermits("window of the last 100 calls, one bit each; reads no clock", failsafeCounted()),
			Why: "failsafe-go reads no clock here and keeps one bit per call; weir reads the clock for the cooldown, and keeps the latency, slowness and outcome of each call",
		},
		{
			Name: "throttle: go-zero's breaker", Weir: throttleRun(), Peer: goZeroDo(),
			Why: "go-zero sums 40 buckets per call, and draws a random number",
		},
		{
			Name: "throttle: kratos aegis", Weir: throttleRun(), Peer: aegisAllow(),
			Why: "aegis sums 10 buckets per call",
		},
		{
			Name: "breaker: hystrix-go", Weir: success, Peer: hystrixDo(),
			Why: "hystrix starts two goroutines per call for its timeout; it has not changed since 2018",
		},
	}
}

func failsafeTimed() circuitbreaker.CircuitBreaker[int] {
	return circuitbreaker.NewBuilder[int]().WithFailureRateThreshold(0.5, 20, 10*time.Second).WithDelay(time.Hour).Build()
}

func failsafeCounted() circuitbreaker.CircuitBreaker[int] {
	return circuitbreaker.NewBuilder[int]().WithFailureThresholdRatio(50, 100).Build()
}

func failsafeGet() Side {
	return Side{"failsafe.With(breaker).Get", "time window of 10 slices, opens at 50 % of at least 20 calls", func() measure.Loop {
		executor := failsafe.With(failsafeTimed())
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

func failsafeRefuses() Side {
	return Side{"failsafe.With(breaker).Get", "open for an hour; returns a fixed error", func() measure.Loop {
		b := failsafeTimed()
		b.Open()
		executor := failsafe.With(b)
		return func(n int) (right int) {
			for range n {
				if v, err := executor.Get(succeedBare); err != nil && v == 0 {
					right++
				}
			}
			return right
		}
	}}
}

func failsafePermits(does string, b circuitbreaker.CircuitBreaker[int]) Side {
	return Side{"failsafe-go TryAcquirePermit + RecordSuccess", does, func() measure.Loop {
		return func(n int) (right int) {
			for range n {
				if b.TryAcquirePermit() {
					b.RecordSuccess()
					right++
				}
			}
			return right
		}
	}}
}

// Silence disables go-zero's log. A program that imports go-zero otherwise logs the load every
// minute.
func Silence() { logx.Disable() }

func goZeroDo() Side {
	return Side{"go-zero breaker.Do", "the same throttling over a rolling window of 40 × 250 ms", func() measure.Loop {
		b := gozero.NewBreaker()
		return func(n int) (right int) {
			for range n {
				if b.Do(succeedBarely) == nil {
					right++
				}
			}
			return right
		}
	}}
}

func aegisAllow() Side {
	return Side{"aegis sre Allow + MarkSuccess", "the same throttling over a rolling window of 10 × 300 ms", func() measure.Loop {
		b := sre.NewBreaker()
		return func(n int) (right int) {
			for range n {
				if b.Allow() == nil {
					b.MarkSuccess()
					right++
				}
			}
			return right
		}
	}}
}

// hystrixDo has many more slots than callers. hystrix releases a slot in its own goroutine, which
// may be late. If no slot seems free, hystrix refuses calls and opens.
func hystrixDo() Side {
	return Side{"hystrix.Do", "rolling window of 10 × 1 s, with a timeout and a bound on calls in flight", func() measure.Loop {
		hystrix.ConfigureCommand("bench", hystrix.CommandConfig{Timeout: 60_000, MaxConcurrentRequests: 100_000})
		return func(n int) (right int) {
			for range n {
				if hystrix.Do("bench", succeedBarely, nil) == nil {
					right++
				}
			}
			return right
		}
	}}
}
