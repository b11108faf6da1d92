package guards

import (
	"context"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/dev/proving/internal/sim"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/throttle"
)

func weirRows() []sim.Maker {
	rows := []sim.Maker{
		Gate(Weir, "weir.Config{}: a breaker with its defaults", weir.Config{}),
		Gate(Recommended, "weir.Config{Adaptive: true}, and a breaker with a Cooldown of 0.5 s, so that it costs "+
			"little where it opens and need not",
			weir.Config{Adaptive: true, Breaker: breaker.Config{Cooldown: 500 * time.Millisecond}}),
	}
	return append(rows, Throttle("weir throttle", "throttle.Config{}", throttle.Config{}),
		retries("weir, retry budget", "weir.Config{RetryShare: 0.1}: the breaker with its defaults, and a retry budget; "+
			"only where callers retry and give up", weir.Config{RetryShare: 0.1}),
		retries("retry budget alone", "the same budget, and a breaker that never opens; only where callers retry and give up",
			weir.Config{RetryShare: 0.1, Breaker: breaker.Config{FailureRate: breaker.Off, FailureRun: breaker.Off}}),
	)
}

// retries returns a row for a gate with a retry budget, among scenarios whose callers retry.
func retries(name, about string, config weir.Config) sim.Maker {
	m := Gate(name, about, config)
	m.Retries = true
	return m
}

// Gate returns a row for a gate with a config.
func Gate(name, about string, config weir.Config) sim.Maker {
	return sim.Maker{
		Name: name, Config: about, Draws: config.Breaker.CooldownJitter > 0,
		New: func(sim.Setting) sim.Guard {
			g, gate := newGate(config)
			g.call = func(ctx context.Context, f func(context.Context) error) error {
				return gate.Run(withAttempt(ctx, gate), f)
			}
			if config.MaxWait > 0 {
				return g
			}
			return &stepped{g, func(ctx context.Context) (func(error), error) { return beginAt(ctx, gate) }}
		},
	}
}

// beginAt begins a call through a gate at which no call waits. Run does the same around a function.
func beginAt(ctx context.Context, gate *weir.Gate) (done func(error), err error) {
	permit, err := gate.Allow(withAttempt(ctx, gate))
	if err != nil {
		return nil, err
	}
	return func(err error) { permit.Done(ctx, err) }, nil
}

// withAttempt marks the retries for a gate that bounds them.
func withAttempt(ctx context.Context, gate *weir.Gate) context.Context {
	if n := sim.SentBefore(ctx); n > 0 && gate.Retries() != nil {
		return weir.WithAttempt(ctx, n)
	}
	return ctx
}

// GateWithThrottle returns a row for a gate with a config and a throttle.
func GateWithThrottle(name, about string, config weir.Config, t throttle.Config) sim.Maker {
	return sim.Maker{
		Name: name, Config: about, Draws: true,
		New: func(sim.Setting) sim.Guard {
			g, gate := newGate(config)
			p := weir.Parts{
				Breaker: gate.Breaker(), Limiter: gate.Limiter(), MaxWait: config.MaxWait,
				RefuseHopeless: config.RefuseHopeless,
				Throttle:       throttle.New("service's throttle", t),
			}
			if config.Adaptive || config.MaxConcurrent > 0 {
				p.InFlight = inflight.New(inflight.Config{Limit: config.MaxConcurrent, Adaptive: config.Adaptive})
			}
			g.call = weir.Join("service", p).Run
			return g
		},
	}
}

// newGate returns a gate, and a guard that counts its openings.
func newGate(config weir.Config) (*guard, *weir.Gate) {
	if config.Breaker.Classify == nil {
		config.Breaker.Classify = classify
	}
	g := &guard{refusals: []error{weir.ErrRefused}, retryAfter: weir.RetryAfter}
	config.Breaker.OnChange = func(c breaker.Change) {
		if c.To == breaker.Open && c.From != breaker.HalfOpen {
			g.openings.Add(1)
		}
	}
	return g, weir.New("service", config)
}

// classify says that a full queue is an overload, as packages weirhttp and weirgrpc do.
func classify(err error) breaker.Outcome {
	if sim.IsOverloaded(err) {
		return breaker.Overloaded
	}
	return breaker.DefaultClassify(err)
}

// Throttle returns a row for a throttle with a config. The throttle uses the random numbers of the
// whole process, which cannot be seeded.
func Throttle(name, about string, config throttle.Config) sim.Maker {
	return sim.Maker{
		Name: name, Config: about, Draws: true,
		New: func(sim.Setting) sim.Guard {
			t := throttle.New("service", config)
			return &guard{
				call: func(ctx context.Context, f func(context.Context) error) error {
					return t.Run(ctx, f)
				},
				refusals: []error{throttle.ErrRefused}, retryAfter: weir.RetryAfter,
			}
		},
	}
}
