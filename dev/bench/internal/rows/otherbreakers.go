package rows

import (
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	gozero "github.com/zeromicro/go-zero/core/breaker"
	"github.com/zeromicro/go-zero/core/logx"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/dev/bench/internal/measure"
)

// otherBreakers returns rows without bounds.
func otherBreakers() []Row {
	return []Row{
		{
			Name: "breaker: closed, failsafe-go's executor", Weir: breakerDo("rolling window of 10 × 1 s; one clock reading", breaker.Config{}), Peer: failsafeGet(),
			Why: "the executor allocates an execution per call, with its attempts and results",
		},
		{
			Name: "breaker: the last 100 calls, failsafe-go", Weir: breakerPermitsOfLast(), Peer: failsafePermits(),
			Why: "failsafe-go reads no clock here and keeps one bit per call; weir reads the clock for the cooldown, and keeps the latency, slowness and outcome of each call",
		},
		{
			Name: "throttle: go-zero's breaker", Weir: throttleRun(), Peer: goZeroDo(),
			Why: "go-zero sums 40 buckets per call, and draws a random number",
		},
	}
}

func failsafeTimed() circuitbreaker.CircuitBreaker[int] {
	return circuitbreaker.NewBuilder[int]().WithFailureRateThreshold(0.5, 20, 10*time.Second).WithDelay(time.Hour).Build()
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

func failsafePermits() Side {
	return Side{"failsafe-go TryAcquirePermit + RecordSuccess", "window of the last 100 calls, one bit each; reads no clock", func() measure.Loop {
		b := circuitbreaker.NewBuilder[int]().WithFailureThresholdRatio(50, 100).Build()
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
