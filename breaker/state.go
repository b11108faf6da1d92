package breaker

import "slices"

// State is what a breaker does with calls. Logs, metrics and configurations show the same text, such
// as half_open.
type State string

// The states that a breaker enters by itself, and the overrides that Force sets on top of them.
const (
	Closed       State = "closed"        // calls pass and are counted
	Open         State = "open"          // calls are refused until the cooldown is over
	HalfOpen     State = "half_open"     // a few calls pass as probes, whose results decide
	ForcedOpen   State = "forced_open"   // override: calls are refused until Release
	ForcedClosed State = "forced_closed" // override: calls pass and are counted, and nothing opens the breaker
	Disabled     State = "disabled"      // override: calls pass and are not counted
	Shadow       State = "shadow"        // override: calls pass and are counted, and so are those a breaker would refuse
)

// evicted is the state of a breaker that its group has evicted. No caller sees it: the breaker
// passes everything on to the one that its key has now.
const evicted State = "evicted"

const stateCount = 7

// states are the states that users see, in the order of metrics.
var states = [stateCount]State{Closed, Open, HalfOpen, ForcedOpen, ForcedClosed, Disabled, Shadow}

// perState has one value for each of states.
type perState[T any] [stateCount]T

func (p *perState[T]) of(s State) *T { return &p[slices.Index(states[:], s)] }

// forced reports whether the state is an override.
func (s State) forced() bool { return slices.Contains(states[3:], s) }
