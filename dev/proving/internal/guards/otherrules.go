package guards

import (
	"fmt"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/dev/proving/internal/sim"
	"github.com/weir-go/weir/window"
)

// otherRulesRows are breakers of weir with the rules of libraries in other languages.
func otherRulesRows() []sim.Maker {
	return []sim.Maker{
		Gate(
			"resilience4j's rules on weir",
			"the defaults of CircuitBreakerConfig: half of the last 100 calls failed, or all took more "+
				"than 60 s; open for 60 s; ten calls while half-open",
			weir.Config{Breaker: breaker.Config{
				FailureRate: 0.5, SlowCall: time.Minute, SlowRate: 1, LastCalls: 100, MinCalls: 100,
				Cooldown: time.Minute, Probes: 10, Recovery: breaker.Off,
			}},
		),
		Gate(
			"Semian's rules on weir",
			"the values of its README: three errors within error_timeout, which is 10 s; open for 10 s; "+
				"two successes close it, and one error opens it again. Semian lets more than two calls "+
				"through while half-open",
			weir.Config{Breaker: breaker.Config{
				FailureRate: breaker.Off, Window: 10 * time.Second, Cooldown: 10 * time.Second, Probes: 2,
				Recovery: breaker.Off,
				Trip: func(c window.Counts) (string, bool) {
					return fmt.Sprintf("%d errors in 10s", c.Failures), c.Failures >= 3
				},
			}},
		),
	}
}
