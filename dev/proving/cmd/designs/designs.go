package main

import (
	"context"
	"errors"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
	"github.com/platinummonkey/go-concurrency-limits/core"
	"github.com/platinummonkey/go-concurrency-limits/limit"
	limiters "github.com/platinummonkey/go-concurrency-limits/limiter"
	"github.com/platinummonkey/go-concurrency-limits/strategy"

	"github.com/weir-go/weir/dev/proving/internal/sim"
	"github.com/weir-go/weir/inflight"
)

// designs returns bounds on calls in flight. Each stands alone: there is no breaker.
func designs() []sim.Maker {
	return []sim.Maker{
		sim.None(),
		sim.Informed(),
		designMaker("weir", func() caller { return weirCaller(inflight.Config{Adaptive: true}) }),
		designMaker("weir, with a queue", func() caller {
			return weirCaller(inflight.Config{Adaptive: true, Queue: inflight.Queue{Target: 50 * time.Millisecond}})
		}),
		designMaker("AIMD", func() caller { return boundedCaller(newAIMD()) }),
		designMaker("gradient", func() caller { return boundedCaller(newGradient()) }),
		designMaker("gradient2", func() caller {
			return concurrencyLimits(limit.NewDefaultGradient2Limit("service", limit.NoopLimitLogger{}, nil))
		}),
		designMaker("Vegas", func() caller {
			return concurrencyLimits(limit.NewDefaultVegasLimit("service", limit.NoopLimitLogger{}, nil))
		}),
		designMaker("failsafe", failsafeLimiter),
	}
}

// caller makes a call, or returns errNoSlot.
type caller func(ctx context.Context, f func(context.Context) error) error

var errNoSlot = errors.New("designs: no slot is free")

// guard makes a sim.Guard of a caller.
type guard struct{ call caller }

func designMaker(name string, newCaller func() caller) sim.Maker {
	return sim.Maker{Name: name, Config: name, New: func(sim.Setting) sim.Guard { return guard{newCaller()} }}
}

func (g guard) Call(ctx context.Context, f func(context.Context) error) error { return g.call(ctx, f) }

func (g guard) Refusal(err error) (time.Duration, bool) { return 0, errors.Is(err, errNoSlot) }

func (g guard) Openings() int { return 0 }

func weirCaller(c inflight.Config) caller {
	l := inflight.New(c)
	return func(ctx context.Context, f func(context.Context) error) error {
		if c.Queue.Target == 0 {
			slot, err := l.TryAcquire(ctx)
			if err != nil {
				return errNoSlot
			}
			return endSlot(ctx, &slot, f)
		}
		slot, err := l.Acquire(ctx)
		if err != nil {
			return errNoSlot
		}
		return endSlot(ctx, &slot, f)
	}
}

func endSlot(ctx context.Context, slot *inflight.Slot, f func(context.Context) error) error {
	err := f(ctx)
	slot.Done(ctx, err)
	return err
}

// concurrencyLimits has the windows of NewDefaultLimiterWithDefaults. All errors are lost calls, as
// for the gRPC client of the library.
func concurrencyLimits(algorithm core.Limit) caller {
	const window = int64(time.Second)
	l, err := limiters.NewDefaultLimiter(algorithm, window, window, int64(100*time.Microsecond), 100,
		strategy.NewSimpleStrategy(1), limit.NoopLimitLogger{}, nil)
	if err != nil {
		panic(err)
	}
	return func(ctx context.Context, f func(context.Context) error) error {
		listener, ok := l.Acquire(ctx)
		if !ok {
			return errNoSlot
		}
		err := f(ctx)
		if err != nil {
			listener.OnDropped()
		} else {
			listener.OnSuccess()
		}
		return err
	}
}

func failsafeLimiter() caller {
	executor := failsafe.With(adaptivelimiter.NewWithDefaults[any]())
	return func(ctx context.Context, f func(context.Context) error) error {
		err := executor.WithContext(ctx).Run(func() error { return f(ctx) })
		if errors.Is(err, adaptivelimiter.ErrExceeded) {
			return errNoSlot
		}
		return err
	}
}
