// Package guards has the rows of the tables: weir and the libraries that a user could take instead,
// unmodified, each with its documented defaults and with the best configuration that a reader of
// its documentation would choose.
//
// Every error of a call is a failure for every guard, a deadline that has passed included. An
// opening is each time that a breaker begins to refuse all calls, after a failed probe too.
package guards

import (
	"slices"

	"github.com/weir-go/weir/dev/proving/internal/sim"
)

// The names of the rows of weir that goals bind.
const (
	Weir        = "weir"
	Recommended = "weir, recommended"
)

// All returns all rows of libraries. The guard that does nothing and the oracle are in package sim.
func All() []sim.Maker {
	return slices.Concat(
		weirRows(), goBreakerRows(), failsafeRows(), goZeroRows(), aegisRows(), hystrixRows(),
		sentinelRows(), concurrencyLimitsRows(), otherRulesRows(),
	)
}

// Quick returns the main rows, in the order of All.
func Quick() []sim.Maker {
	main := []string{
		Weir, Recommended, "weir throttle", "gobreaker", "gobreaker, tuned", "failsafe breaker, tuned",
		"failsafe limiter", "failsafe limiter, tuned", "failsafe throttler", "concurrency-limits, tuned",
	}
	return slices.DeleteFunc(All(), func(m sim.Maker) bool { return !slices.Contains(main, m.Name) })
}

// An Absence is a library that is not in the tables.
type Absence struct{ Name, Reason string }

// Left returns what is not in the tables, and why.
func Left() []Absence {
	return []Absence{
		{
			"aegis ratelimit/bbr",
			"it guards a server, and reads the load of the machine's processor, which is not simulated",
		},
		{
			"sentinel-golang system and isolation rules",
			"the system rules read the load of the machine; the isolation rule is a fixed bound",
		},
		{
			"resilience4j, Semian",
			"they are written in Java and Ruby; their rules are rows of weir with their documented values",
		},
	}
}
