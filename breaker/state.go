package breaker

import (
	"fmt"
	"slices"
	"strings"
)

// State is what a breaker does with calls. As text it is a word such as half_open, the same in logs,
// metrics and configurations.
type State uint8

// The states that a breaker enters by itself, and the overrides that Force lays over them.
const (
	Closed       State = iota // calls pass and are counted
	Open                      // calls are refused until the cooldown is over
	HalfOpen                  // a few calls pass as probes; their results decide
	ForcedOpen                // override: calls are refused until Release
	ForcedClosed              // override: calls pass and are counted, and nothing opens the breaker
	Disabled                  // override: calls pass and are not even counted
	Shadow                    // override: calls pass and are counted, and so is what would have been refused
	states                    // how many there are
)

var stateNames = [states]string{"closed", "open", "half_open", "forced_open", "forced_closed", "disabled", "shadow"}

// String returns the text of s.
func (s State) String() string {
	if s < states {
		return stateNames[s]
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// MarshalText returns the text of s.
func (s State) MarshalText() ([]byte, error) {
	if s < states {
		return []byte(stateNames[s]), nil
	}
	return nil, fmt.Errorf("breaker: State is %d, must be below %d", uint8(s), states)
}

// UnmarshalText sets s to the state of that text.
func (s *State) UnmarshalText(text []byte) error {
	i := slices.Index(stateNames[:], string(text))
	if i < 0 {
		last := len(stateNames) - 1
		return fmt.Errorf("breaker: State is %.60q, must be %s or %s", text, strings.Join(stateNames[:last], ", "), stateNames[last])
	}
	*s = State(i)
	return nil
}

// forced reports whether the state is an override.
func (s State) forced() bool { return s >= ForcedOpen && s < states }
