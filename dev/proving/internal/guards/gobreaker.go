package guards

import (
	"context"
	"errors"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/weir-go/weir/dev/proving/internal/sim"
)

func goBreakerRows() []sim.Maker {
	return []sim.Maker{
		goBreaker("gobreaker", "Settings{}: opens on six consecutive failures, for 60 s; one probe",
			gobreaker.Settings{}),
		goBreaker("gobreaker, tuned",
			"the failure ratio of its README, 0.6, in a rolling window of 10 s, because the counts of a "+
				"closed breaker are never cleared by default; at least 20 calls in place of the README's 3, "+
				"which fail by chance; Timeout 5 s in place of 60 s, to be back soon; three probes; "+
				"cancelled calls are excluded",
			gobreaker.Settings{
				MaxRequests: 3, Interval: 10 * time.Second, BucketPeriod: time.Second, Timeout: 5 * time.Second,
				ReadyToTrip: func(c gobreaker.Counts) bool {
					return c.Requests >= 20 && float64(c.TotalFailures)/float64(c.Requests) >= 0.6
				},
				IsExcluded: func(err error) bool { return errors.Is(err, context.Canceled) },
			}),
	}
}

func goBreaker(name, about string, settings gobreaker.Settings) sim.Maker {
	return sim.Maker{
		Name: name, Config: about, Peer: true,
		New: func(sim.Setting) sim.Guard {
			g := &guard{refusals: []error{gobreaker.ErrOpenState, gobreaker.ErrTooManyRequests}}
			own := settings
			own.OnStateChange = func(_ string, from, to gobreaker.State) {
				if to == gobreaker.StateOpen && from != gobreaker.StateHalfOpen {
					g.openings.Add(1)
				}
			}
			b := gobreaker.NewTwoStepCircuitBreaker[struct{}](own)
			begin := func(context.Context) (func(error), error) { return b.Allow() }
			g.call = func(ctx context.Context, f func(context.Context) error) error {
				done, err := begin(ctx)
				if err != nil {
					return err
				}
				err = f(ctx)
				done(err)
				return err
			}
			return &stepped{g, begin}
		},
	}
}
