package window

import (
	"fmt"
	"slices"
)

// Outcome is what a call says about the service. As text it is "success", "failure" or "ignored".
type Outcome uint8

// The outcomes of a call.
const (
	Success Outcome = iota // the service answered as it should
	Failure                // the service failed
	Ignored                // the call says nothing about the service
)

var outcomeNames = []string{"success", "failure", "ignored"}

// String returns the text of o, or unknown.
func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return "unknown"
}

// MarshalText returns the text of o.
func (o Outcome) MarshalText() ([]byte, error) {
	if int(o) >= len(outcomeNames) {
		return nil, fmt.Errorf("window: Outcome is %d, must be Success, Failure or Ignored", uint8(o))
	}
	return []byte(outcomeNames[o]), nil
}

// UnmarshalText sets o to the outcome of that text.
func (o *Outcome) UnmarshalText(text []byte) error {
	i := slices.Index(outcomeNames, string(text))
	if i < 0 {
		return fmt.Errorf("window: Outcome is %.60q, must be success, failure or ignored", text)
	}
	*o = Outcome(i)
	return nil
}
