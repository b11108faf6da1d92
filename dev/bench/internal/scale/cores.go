package scale

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/dev/bench/internal/measure"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/window"
)

// cores varies GOMAXPROCS, with as many goroutines that all use the same object. More threads than
// the machine has cores lose their core at any moment, so they show what happens to the others if a
// thread stops in the middle of a call.
func (t timer) cores() Experiment {
	one := func(name string, loop func() measure.Loop) Line {
		return Line{Name: name, Cost: func(procs int) (float64, error) { return t.together(procs, loop()) }}
	}
	return Experiment{
		File: "cores", Title: "One object, used by GOMAXPROCS goroutines", X: "GOMAXPROCS", Y: "ns per call", Sizes: []int{1, 2, 4, 8, 16, 32, 64},
		Lines: []Line{
			one("breaker.Run", breakerLoop), one("weir.Gate.Run with a rate", gateLoop), one("TokenBucket.Take", bucketLoop),
			one("one key of a limiter.Group", keyLoop), one("window.Calls.Record", recordLoop),
		},
		Why: "The time of all goroutines together, divided by the calls of all of them. A lock whose holder loses its core stops the others; an atomic operation does not.",
	}
}

// together returns the nanoseconds per call of the median turn.
func (t timer) together(procs int, loop measure.Loop) (float64, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
	n, err := measure.Serial.CountFor(loop, t.each/turnsPerPoint)
	if err != nil {
		return 0, err
	}
	var costs []float64
	for range turnsPerPoint {
		ns, err := measure.RunTogether(max(5*n/procs, 100), slices.Repeat([]measure.Loop{loop}, procs)...)
		if err != nil {
			return 0, err
		}
		costs = append(costs, ns)
	}
	return measure.SpreadOf(costs).Median, nil
}

// Collapsed names the curves of the experiment with the cores that are much slower at the largest
// GOMAXPROCS than at 2.
func (e Experiment) Collapsed(curves []Curve) (faults []string) {
	for _, c := range curves {
		two, most := c.Costs[1], c.Costs[len(c.Costs)-1]
		if most > two*(1+measure.SharedDrift) {
			faults = append(faults, fmt.Sprintf("%s: %.3g ns per call at GOMAXPROCS 2, and %.3g ns at %d", c.Name, two, most, e.Sizes[len(c.Costs)-1]))
		}
	}
	return faults
}

// Cores returns the experiment with the cores.
func Cores(each time.Duration) Experiment { return timer{each}.cores() }

// calls returns a loop of a call that reports whether it did what is expected.
func calls(call func() bool) measure.Loop {
	return func(n int) (right int) {
		for range n {
			if call() {
				right++
			}
		}
		return right
	}
}

func breakerLoop() measure.Loop {
	b, ctx := breaker.New("bench", breaker.Config{}), context.Background()
	return calls(func() bool { return b.Run(ctx, succeed) == nil })
}

func gateLoop() measure.Loop {
	g, ctx := weir.New("bench", weir.Config{Rate: limiter.PerSecond(1e8), Burst: ampleBurst}), context.Background()
	return calls(func() bool { return g.Run(ctx, succeed) == nil })
}

func bucketLoop() measure.Loop {
	b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1e8), Burst: ampleBurst})
	return calls(func() bool { return b.Take(1).OK })
}

func keyLoop() measure.Loop {
	g := limiter.NewGroup(limiter.GroupConfig[int]{Rate: limiter.PerSecond(1e8), Burst: ampleBurst})
	return calls(func() bool { return g.Get(1).Take(1).OK })
}

func recordLoop() measure.Loop {
	c := window.NewCalls(window.CallsConfig{})
	return calls(func() bool { c.Record(window.Success, 0); return true })
}
