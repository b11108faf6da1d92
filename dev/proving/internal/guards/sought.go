package guards

import (
	"context"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/dev/proving/internal/sim"
	"github.com/weir-go/weir/inflight"
)

// The names of the rows that the search for harm has beside those of All.
const (
	ByRate  = "gobreaker, by rate"
	PerHost = "weir, per host"
	Queued  = "weir, queue"
)

// Sought returns the rows that only the search for harm has.
func Sought() []sim.Maker {
	return []sim.Maker{
		goBreaker(ByRate, "half of at least 20 calls in 10 s; a timeout of 1 s, and one probe",
			gobreaker.Settings{
				Interval: 10 * time.Second, BucketPeriod: time.Second, Timeout: time.Second,
				ReadyToTrip: func(c gobreaker.Counts) bool {
					return c.Requests >= 20 && 2*c.TotalFailures >= c.Requests
				},
			}),
		perHost(),
		queued(),
	}
}

// perHost is a gate for each host, of a client that chooses the host.
func perHost() sim.Maker {
	return sim.Maker{
		Name: PerHost, Config: "weir.NewGroup(weir.GroupConfig{}): a gate for each host, if the client chooses the host",
		New: func(sim.Setting) sim.Guard {
			g := &guard{refusals: []error{weir.ErrRefused}, retryAfter: weir.RetryAfter}
			group := weir.NewGroup[int]("service", weir.GroupConfig{})
			g.call = func(ctx context.Context, f func(context.Context) error) error {
				return group.Get(sim.Host(ctx)).Run(ctx, f)
			}
			return &stepped{g, func(ctx context.Context) (func(error), error) {
				return beginAt(ctx, group.Get(sim.Host(ctx)))
			}}
		},
	}
}

// queued is the limiter of weirhttp.Shed, in front of the service.
func queued() sim.Maker {
	return sim.Maker{
		Name: Queued, Config: "an adaptive inflight.Limiter whose callers wait for a slot, with a Target of 20 ms",
		New: func(sim.Setting) sim.Guard {
			l := inflight.New(inflight.Config{Adaptive: true, Queue: inflight.Queue{Target: 20 * time.Millisecond}})
			return &guard{call: l.Run, refusals: []error{weir.ErrRefused}, retryAfter: weir.RetryAfter}
		},
	}
}
