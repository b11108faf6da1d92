package breaker_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/internal/sentinel"
	"github.com/weir-go/weir/window"
)

// modelCallers is many goroutines that call through one breaker while other goroutines change the
// breaker. It counts the result of every call itself.
type modelCallers struct {
	breaker *breaker.Breaker
	calls   int           // of each goroutine
	fails   atomic.Int64  // how many of a hundred calls fail
	done    chan struct{} // closed when the last call has ended

	made, refused, uncounted atomic.Int64
	counted                  [3]atomic.Int64 // by outcome
	// by outcome: calls through Run, which does not say whether they counted
	ran [3]atomic.Int64
}

// outcome draws the outcome of a call.
func (c *modelCallers) outcome(rnd *rand.Rand) breaker.Outcome {
	switch n := rnd.Int64N(100); {
	case n < 3:
		return breaker.Ignored
	case n < 3+c.fails.Load():
		return breaker.Failure
	}
	return breaker.Success
}

// callByPermit makes a call through a permit, and sometimes records its result twice.
func (c *modelCallers) callByPermit(rnd *rand.Rand) {
	c.made.Add(1)
	p, err := c.breaker.Allow()
	if err != nil {
		c.refused.Add(1)
		return
	}
	o := c.outcome(rnd)
	modelDelay(rnd)
	if p.Record(bg(), nil, o) {
		c.counted[o].Add(1)
	} else {
		c.uncounted.Add(1)
	}
	if rnd.IntN(20) == 0 && p.Record(bg(), nil, breaker.Failure) {
		panic("a permit counted twice")
	}
}

// callByRun makes a call through Run; some of them panic.
func (c *modelCallers) callByRun(rnd *rand.Rand) {
	c.made.Add(1)
	o, called := c.outcome(rnd), false
	defer func() {
		_ = recover()
		if called {
			c.ran[o].Add(1)
		} else {
			c.refused.Add(1)
		}
	}()
	_ = c.breaker.Run(bg(), func(context.Context) error {
		called = true
		modelDelay(rnd)
		switch {
		case o == breaker.Success:
			return nil
		case o == breaker.Ignored:
			return sentinel.ErrRefused
		case rnd.IntN(4) == 0:
			panic(errDown)
		}
		return errDown
	})
}

// modelDelay delays a call in various ways, so that calls overlap.
func modelDelay(rnd *rand.Rand) {
	switch rnd.IntN(8) {
	case 0, 1:
		runtime.Gosched()
	case 2:
		modelYield(rnd.IntN(100))
	}
}

// modelYield lets other goroutines run the given number of times.
func modelYield(times int) {
	for range times {
		runtime.Gosched()
	}
}

// runAll makes all calls on eight goroutines. While they run, it calls each function of others
// again and again.
func (c *modelCallers) runAll(seed uint64, call func(*rand.Rand), others ...func(*rand.Rand)) {
	c.done = make(chan struct{})
	var callers, rest sync.WaitGroup
	for i := range uint64(8) {
		callers.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, i))
			for range c.calls {
				call(rnd)
			}
		})
	}
	for i, other := range others {
		rest.Go(func() {
			for rnd := rand.New(rand.NewPCG(seed, 100+uint64(i))); ; other(rnd) {
				select {
				case <-c.done:
					return
				default:
					modelDelay(rnd)
				}
			}
		})
	}
	callers.Wait()
	close(c.done)
	rest.Wait()
}

// modelConfigs are rules under which a breaker opens and closes often.
func modelConfigs(tell func(breaker.Change)) []breaker.Config {
	c := breaker.Config{MinCalls: 5, Cooldown: 200 * time.Microsecond, Probes: 3, Recovery: 2 * time.Millisecond, OnChange: tell}
	slow, last, quick := c, c, c
	slow.SlowCall, slow.Window = 40*time.Microsecond, 20*time.Millisecond
	slow.Trip = func(c window.Counts) (string, bool) {
		// lets other goroutines run between the reading and the opening
		modelYield(20)
		return "a handful", c.Calls() >= 4
	}
	last.LastCalls, last.Probes, last.ConsecutiveFailures, last.Recovery = 20, 1, 4, breaker.Off
	quick.Cooldown, quick.ProbeTimeout, quick.HalfOpenTimeout = breaker.Off, 100*time.Microsecond, time.Millisecond
	return []breaker.Config{c, slow, last, quick}
}

// modelOverrider changes a breaker by hand in every way, except that it never forces the state
// given by the parameter never.
func modelOverrider(b *breaker.Breaker, configs []breaker.Config, never breaker.State) func(*rand.Rand) {
	return func(rnd *rand.Rand) {
		modelYield(rnd.IntN(300))
		switch rnd.IntN(10) {
		case 0, 1:
			if s := overrides[rnd.IntN(4)]; s != never {
				b.Force(s, "")
			}
		case 2:
			b.OpenFor(time.Duration(rnd.IntN(300)) * time.Microsecond)
		case 3:
			b.Reset()
		case 4, 5:
			if err := b.Reconfigure(configs[rnd.IntN(len(configs))]); err != nil {
				panic(err)
			}
		default:
			b.Release()
		}
	}
}
