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

var stateNames = []string{"closed", "open", "half_open", "forced_open", "forced_closed", "disabled", "shadow"}

// String returns the text of s.
func (s State) String() string { return nameOf("state", stateNames, s) }

// MarshalText returns the text of s.
func (s State) MarshalText() ([]byte, error) { return textOf("State", stateNames, s) }

// UnmarshalText sets s to the state of that text.
func (s *State) UnmarshalText(text []byte) error { return setByText(s, "State", stateNames, text) }

// forced reports whether the state is an override.
func (s State) forced() bool { return s >= ForcedOpen && s < states }

// nameOf returns the name of a value of an enumeration, or its number if it has none.
func nameOf[E ~uint8](kind string, names []string, v E) string {
	if int(v) < len(names) {
		return names[v]
	}
	return fmt.Sprintf("%s %d", kind, uint8(v))
}

func textOf[E ~uint8](kind string, names []string, v E) ([]byte, error) {
	if int(v) < len(names) {
		return []byte(names[v]), nil
	}
	return nil, fmt.Errorf("breaker: %s is %d, must be below %d", kind, uint8(v), len(names))
}

func setByText[E ~uint8](v *E, kind string, names []string, text []byte) error {
	i := slices.Index(names, string(text))
	if i < 0 {
		last := len(names) - 1
		return fmt.Errorf("breaker: %s is %.60q, must be %s or %s", kind, text, strings.Join(names[:last], ", "), names[last])
	}
	*v = E(i)
	return nil
}
