package guards

import (
	"context"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/proving/internal/sim"
	"github.com/weir-go/weir/throttle"
)

// recommended is the gate that the README recommends, if that is not weir.Config{}.
var recommended *weir.Config

func weirRows() []sim.Maker {
	rows := []sim.Maker{Gate(Weir, "weir.Config{}: a breaker with its defaults", weir.Config{})}
	if recommended != nil {
		rows = append(rows, Gate(Recommended, "what the README recommends", *recommended))
	}
	return append(rows, Throttle("weir throttle", "throttle.Config{}", throttle.Config{}))
}

// Gate returns a row for a gate with a config.
func Gate(name, about string, config weir.Config) sim.Maker {
	return sim.Maker{
		Name: name, Config: about, Draws: config.Breaker.CooldownJitter > 0,
		New: func(sim.Setting) sim.Guard {
			g := &guard{refusals: []error{weir.ErrRefused}, retryAfter: weir.RetryAfter}
			own, onChange := config, config.Breaker.OnChange
			own.Breaker.OnChange = func(c breaker.Change) {
				if c.To == breaker.Open {
					g.openings.Add(1)
				}
				if onChange != nil {
					onChange(c)
				}
			}
			g.call = weir.New("service", own).Run
			return g
		},
	}
}

// Throttle returns a row for a throttle with a config. It draws random numbers of the whole process,
// which cannot be seeded.
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
