package rows

import (
	"time"

	"github.com/afex/hystrix-go/hystrix"
	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/go-kratos/aegis/circuitbreaker/sre"
	gozero "github.com/zeromicro/go-zero/core/breaker"
	"github.com/zeromicro/go-zero/core/logx"

	"github.com/weir-go/weir/bench/internal/measure"
	"github.com/weir-go/weir/breaker"
)

// otherBreakers are for information.
func otherBreakers() []Row {
	ours := breakerDo("rolling 10 × 1 s; one reading of the clock", breaker.Config{})
	return []Row{
		{
			Name: "breaker: closed, failsafe-go's executor", Weir: ours, Peer: failsafeGet(),
			Why: "its executor keeps an execution with attempts and results for each call, on the heap",
		},
		{
			Name: "breaker: open, failsafe-go's executor", Weir: breakerRefuses(), Peer: failsafeRefuses(),
			Why: "the same, for a refusal",
		},
		{
			Name: "breaker: two-step, failsafe-go over time", Weir: breakerPermits(), Peer: failsafePermits("time window of 10 slices; no panic safety in this form", timed()),
			Why: "the form of both that does without a closure",
		},
		{
			Name: "breaker: two-step, failsafe-go over calls", Weir: breakerPermitsOfLast(), Peer: failsafePermits("the last 100 calls, one bit each; reads no clock", counted()),
			Why: "failsafe-go reads no clock here, and a bit a call is all it keeps; ours asks the time for the cooldown, and keeps latency, slow calls and failures of each call",
		},
		{
			Name: "throttle: go-zero's breaker", Weir: throttleRun(), Peer: goZeroDo(),
			Why: "go-zero adds up 40 buckets at each call, and draws a random number",
		},
		{
			Name: "throttle: kratos aegis", Weir: throttleRun(), Peer: aegisAllow(),
			Why: "aegis adds up 10 buckets at each call",
		},
		{
			Name: "breaker: hystrix-go", Weir: ours, Peer: hystrixDo(),
			Why: "hystrix starts two goroutines for each call, for its timeout; it has not changed since 2018",
		},
	}
}

func timed() circuitbreaker.CircuitBreaker[int] {
	return circuitbreaker.NewBuilder[int]().WithFailureRateThreshold(0.5, 20, 10*time.Second).WithDelay(time.Hour).Build()
}

func counted() circuitbreaker.CircuitBreaker[int] {
	return circuitbreaker.NewBuilder[int]().WithFailureThresholdRatio(50, 100).Build()
}

func failsafeGet() Side {
	return Side{"failsafe.With(breaker).Get", "time window of 10 slices, 20 calls and 50 % to trip", func() measure.Loop {
		executor := failsafe.With(timed())
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
		b := timed()
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

// Silence keeps go-zero from logging the load of the machine every minute, which it does from the moment it is linked.
func Silence() { logx.Disable() }

func goZeroDo() Side {
	return Side{"go-zero breaker.Do", "the same throttling on a rolling 40 × 250 ms", func() measure.Loop {
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
	return Side{"aegis sre Allow + MarkSuccess", "the same throttling on a rolling 10 × 300 ms", func() measure.Loop {
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

// hystrixDo has far more places than callers: hystrix gives a place back in a goroutine of its own, which may lag, and refuses
// calls, and opens, where there seem to be none.
func hystrixDo() Side {
	return Side{"hystrix.Do", "rolling 10 × 1 s, with a timeout and a bound on calls in flight", func() measure.Loop {
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
