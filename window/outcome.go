package window

import (
	"fmt"
	"slices"
)

// Outcome classifies the result of a call: whether it shows the service to be healthy.
type Outcome uint8

// The outcomes of a call.
const (
	Success Outcome = iota // the service works
	Failure                // the service failed
	Ignored                // the call says nothing about the service
)

var outcomeWords = []string{Success: "success", Failure: "failure", Ignored: "ignored"}

// String returns "success", "failure", "ignored" or, for any other value, "unknown".
func (o Outcome) String() string {
	if int(o) < len(outcomeWords) {
		return outcomeWords[o]
	}
	return "unknown"
}

// MarshalText returns the text of String, or an error for a value that is none of the constants.
func (o Outcome) MarshalText() ([]byte, error) {
	if int(o) >= len(outcomeWords) {
		return nil, fmt.Errorf("window: Outcome is %d, must be Success, Failure or Ignored", uint8(o))
	}
	return []byte(outcomeWords[o]), nil
}

// UnmarshalText sets o to the outcome that the text names. If there is none, it returns an error
// and leaves o as it is.
func (o *Outcome) UnmarshalText(text []byte) error {
	i := slices.Index(outcomeWords, string(text))
	if i < 0 {
		return fmt.Errorf("window: Outcome is %.60q, must be success, failure or ignored", text)
	}
	*o = Outcome(i)
	return nil
}
