package neighbour

import (
	"context"
	"sync/atomic"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/dev/bench/internal/measure"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/window"
)

// All returns the cases, first those of the machine, then those of weir.
func All() []Case {
	return []Case{
		{"atomic words, 8 bytes apart", true, wordLoops(1)},
		{"atomic words, 64 bytes apart", true, wordLoops(8)},
		{"atomic words, 128 bytes apart", true, wordLoops(16)},
		{"window.Calls, allocated in a row", false, repeat(recordLoop)},
		{"TokenBuckets, allocated in a row", false, repeat(takeLoop)},
		{"breakers, allocated in a row", false, repeat(runLoop)},
		{"members of a breaker.Group, with Get", false, memberLoops},
		{"keys of a limiter.Group", false, keyLoops},
	}
}

// repeat returns a function that calls newLoop n times and returns the loops.
func repeat(newLoop func() measure.Loop) func(n int) []measure.Loop {
	return func(n int) (loops []measure.Loop) {
		for range n {
			loops = append(loops, newLoop())
		}
		return loops
	}
}

// wordLoops returns loops on atomic words that are step words apart.
func wordLoops(step int) func(n int) []measure.Loop {
	return func(n int) (loops []measure.Loop) {
		all := make([]atomic.Int64, n*step)
		for i := range n {
			loops = append(loops, func(n int) int {
				for range n {
					all[i*step].Add(1)
				}
				return n
			})
		}
		return loops
	}
}

func recordLoop() measure.Loop {
	c := window.NewCalls(window.CallsConfig{})
	return func(n int) int {
		for range n {
			c.Record(window.Success, 0)
		}
		return n
	}
}

func takeLoop() measure.Loop {
	b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1e8), Burst: 1 << 30})
	return func(n int) (right int) {
		for range n {
			if b.Take(1).OK {
				right++
			}
		}
		return right
	}
}

func runLoop() measure.Loop {
	b, ctx := breaker.New("bench", breaker.Config{}), context.Background()
	return func(n int) (right int) {
		for range n {
			if b.Run(ctx, succeed) == nil {
				right++
			}
		}
		return right
	}
}

func succeed(context.Context) error { return nil }

func memberLoops(n int) (loops []measure.Loop) {
	g, ctx := breaker.NewGroup[int]("bench", breaker.GroupConfig{}), context.Background()
	for i := range n {
		g.Get(i) // create the members in order
		loops = append(loops, func(n int) (right int) {
			for range n {
				if g.Get(i).Run(ctx, succeed) == nil {
					right++
				}
			}
			return right
		})
	}
	return loops
}

func keyLoops(n int) (loops []measure.Loop) {
	g := limiter.NewGroup(limiter.GroupConfig[int]{Rate: limiter.PerSecond(1e8), Burst: 1 << 30})
	for i := range n {
		loops = append(loops, func(n int) (right int) {
			for range n {
				if g.Get(i).Take(1).OK {
					right++
				}
			}
			return right
		})
	}
	return loops
}
