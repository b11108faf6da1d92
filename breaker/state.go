package breaker

import "fmt"

// State is what a breaker does with calls.
type State uint8

// The states of a breaker.
const (
	Closed   State = iota // calls pass and are judged
	Open                  // calls are refused until the cooldown is over
	HalfOpen              // a few calls pass as probes; their results decide
	states                // how many there are
)

// String returns the state as it stands in logs and metrics: closed, open, half_open.
func (s State) String() string {
	switch s {
	case Closed:
		return "closed"
	case Open:
		return "open"
	case HalfOpen:
		return "half_open"
	}
	return fmt.Sprintf("state %d", uint8(s))
}
