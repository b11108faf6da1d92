package breaker

import "fmt"

// State is what a breaker does with calls.
type State uint8

// The states that a breaker goes through by itself, and the overrides that Force
// puts over them.
const (
	Closed       State = iota // calls pass and are judged
	Open                      // calls are refused until the cooldown is over
	HalfOpen                  // a few calls pass as probes; their results decide
	ForcedOpen                // override: calls are refused until Release
	ForcedClosed              // override: calls pass and are counted, and nothing opens it
	Disabled                  // override: calls pass and are not even counted
	Shadow                    // override: calls pass, are counted and judged, and what would have been refused is said
	states                    // how many there are
)

var stateNames = [states]string{"closed", "open", "half_open", "forced_open", "forced_closed", "disabled", "shadow"}

// String returns the state as it stands in logs and metrics, such as half_open.
func (s State) String() string {
	if s < states {
		return stateNames[s]
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// forced reports whether the state is an override.
func (s State) forced() bool { return s >= ForcedOpen && s < states }
