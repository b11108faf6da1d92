package guards

import (
	"context"
	"errors"
	"time"

	"github.com/platinummonkey/go-concurrency-limits/core"
	"github.com/platinummonkey/go-concurrency-limits/limit"
	"github.com/platinummonkey/go-concurrency-limits/limiter"
	"github.com/platinummonkey/go-concurrency-limits/strategy"

	"github.com/weir-go/weir/dev/proving/internal/sim"
)

func concurrencyLimitsRows() []sim.Maker {
	return []sim.Maker{
		concurrencyLimits(
			sim.Maker{
				Name: "concurrency-limits",
				Config: "NewDefaultLimiterWithDefaults of platinummonkey/go-concurrency-limits: the limit Vegas, and " +
					"windows of one second with at least 100 calls",
				Draws: true, // when it measures the latency without load
			},
			func() core.Limit { return limit.NewDefaultVegasLimit("service", limit.NoopLimitLogger{}, nil) },
		),
		concurrencyLimits(
			sim.Maker{
				Name:   "concurrency-limits, tuned",
				Config: "the limit AIMD, because the README recommends a limit by lost calls for clients",
			},
			func() core.Limit { return limit.NewDefaultAIMDLimit("service", nil) },
		),
	}
}

var errConcurrencyLimits = errors.New("concurrency-limits: limit exceeded")

// concurrencyLimits counts all errors as lost calls, as the gRPC client of the library does by
// default.
func concurrencyLimits(row sim.Maker, algorithm func() core.Limit) sim.Maker {
	row.Peer = true
	row.New = func(sim.Setting) sim.Guard {
		const window = int64(time.Second)
		l, err := limiter.NewDefaultLimiter(algorithm(), window, window, int64(100*time.Microsecond), 100,
			strategy.NewSimpleStrategy(1), limit.NoopLimitLogger{}, nil)
		if err != nil {
			panic(err)
		}
		return &guard{
			refusals: []error{errConcurrencyLimits},
			call: func(ctx context.Context, f func(context.Context) error) error {
				listener, ok := l.Acquire(ctx)
				if !ok {
					return errConcurrencyLimits
				}
				err := f(ctx)
				if err != nil {
					listener.OnDropped()
				} else {
					listener.OnSuccess()
				}
				return err
			},
		}
	}
	return row
}
