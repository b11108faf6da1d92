package guards

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
	"github.com/failsafe-go/failsafe-go/adaptivethrottler"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"

	"github.com/weir-go/weir/dev/proving/internal/sim"
)

func failsafeRows() []sim.Maker {
	return slices.Concat(failsafeBreakers(), failsafeLimiters(), failsafeThrottlers())
}

func failsafeBreakers() []sim.Maker {
	return []sim.Maker{
		failsafeBreaker("failsafe breaker", "NewWithDefaults: opens on one failure, for 60 s; one probe",
			circuitbreaker.NewBuilder[any]),
		failsafeBreaker("failsafe breaker, tuned",
			"a failure rate over time, as documented for services with traffic: half of at least 20 calls in "+
				"10 s; a delay of 5 s in place of 60 s, to be back soon; three successes of five probes close "+
				"it, so that one failure does not decide; cancelled calls are not failures",
			func() circuitbreaker.Builder[any] {
				return circuitbreaker.NewBuilder[any]().HandleIf(notCancelled).
					WithFailureRateThreshold(0.5, 20, 10*time.Second).
					WithDelay(5*time.Second).WithSuccessThresholdRatio(3, 5)
			}),
	}
}

func failsafeLimiters() []sim.Maker {
	return []sim.Maker{
		failsafePolicy(
			sim.Maker{
				Name:   "failsafe limiter",
				Config: "the adaptive limiter's NewWithDefaults: limits 1 to 200, at first 20; no queue",
			}, adaptivelimiter.ErrExceeded,
			func() failsafe.Policy[any] { return adaptivelimiter.NewWithDefaults[any]() },
		),
		failsafePolicy(
			sim.Maker{
				Name: "failsafe limiter, tuned",
				Config: "the adaptive limiter with limits and a queue as under Basic Usage, because a queue is documented " +
					"to avoid needless refusals; a call waits at most 50 ms in it, because without a bound it waits " +
					"until its deadline",
				Draws: true, // which calls it refuses when its queue is nearly full
			}, adaptivelimiter.ErrExceeded,
			func() failsafe.Policy[any] {
				return adaptivelimiter.NewBuilder[any]().WithLimits(1, 100, 20).
					WithRecentWindow(time.Second, 30*time.Second, 50).WithBaselineWindow(10).
					WithQueueing(2, 3).WithMaxWaitTime(50 * time.Millisecond).Build()
			},
		),
	}
}

func failsafeThrottlers() []sim.Maker {
	return []sim.Maker{
		failsafePolicy(
			sim.Maker{
				Name:   "failsafe throttler",
				Config: "the adaptive throttler's NewWithDefaults: above 10 % failures in a minute; at most 90 % refused",
				Draws:  true,
			}, adaptivethrottler.ErrExceeded,
			func() failsafe.Policy[any] { return adaptivethrottler.NewWithDefaults[any]() },
		),
		failsafePolicy(
			sim.Maker{
				Name: "failsafe throttler, tuned",
				Config: "the adaptive throttler above 50 % failures of at least 20 calls in 10 s: the ratio of the " +
					"SRE book that it implements; with the default of 10 % a service that answers half of the " +
					"calls gets hardly any, and a minute is long until the end of an outage is seen",
				Draws: true,
			}, adaptivethrottler.ErrExceeded,
			func() failsafe.Policy[any] {
				return adaptivethrottler.NewBuilder[any]().HandleIf(notCancelled).
					WithFailureRateThreshold(0.5, 20, 10*time.Second).Build()
			},
		),
	}
}

func notCancelled(_ any, err error) bool { return err != nil && !errors.Is(err, context.Canceled) }

func failsafeBreaker(name, about string, builder func() circuitbreaker.Builder[any]) sim.Maker {
	return sim.Maker{
		Name: name, Config: about, Peer: true,
		New: func(sim.Setting) sim.Guard {
			g := &guard{refusals: []error{circuitbreaker.ErrOpen}}
			b := builder().OnOpen(func(e circuitbreaker.StateChangedEvent) {
				if e.OldState != circuitbreaker.HalfOpenState {
					g.openings.Add(1)
				}
			}).Build()
			g.retryAfter = func(error) time.Duration { return b.RemainingDelay() }
			g.call = runWith(b)
			return g
		},
	}
}

func failsafePolicy(row sim.Maker, refusal error, policy func() failsafe.Policy[any]) sim.Maker {
	row.Peer = true
	row.New = func(sim.Setting) sim.Guard {
		return &guard{refusals: []error{refusal}, call: runWith(policy())}
	}
	return row
}

// runWith passes the context of a call to the executor, as the HTTP client of failsafe-go does. The
// adaptive limiter then learns nothing from calls whose deadline passes.
func runWith(policy failsafe.Policy[any]) func(context.Context, func(context.Context) error) error {
	executor := failsafe.With(policy)
	return func(ctx context.Context, f func(context.Context) error) error {
		return executor.WithContext(ctx).Run(func() error { return f(ctx) })
	}
}
