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
	// Overloaded is a Failure of a service that has refused the call because it has too many, such
	// as HTTP's status 429. An adaptive bound on calls in flight learns from it.
	Overloaded
)

var outcomeWords = []string{Success: "success", Failure: "failure", Ignored: "ignored", Overloaded: "overloaded"}

// Failed reports whether the service failed: Failure and Overloaded.
func (o Outcome) Failed() bool { return o == Failure || o == Overloaded }

// String returns "success", "failure", "ignored", "overloaded" or, for any other value, "unknown".
func (o Outcome) String() string {
	if int(o) < len(outcomeWords) {
		return outcomeWords[o]
	}
	return "unknown"
}

// MarshalText returns the text of String, or an error for a value that is none of the constants.
func (o Outcome) MarshalText() ([]byte, error) {
	if int(o) >= len(outcomeWords) {
		return nil, fmt.Errorf("window: Outcome is %d, must be Success, Failure, Ignored or Overloaded", uint8(o))
	}
	return []byte(outcomeWords[o]), nil
}

// UnmarshalText sets o to the outcome that the text names. If there is none, it returns an error
// and leaves o as it is.
func (o *Outcome) UnmarshalText(text []byte) error {
	i := slices.Index(outcomeWords, string(text))
	if i < 0 {
		return fmt.Errorf("window: Outcome is %.60q, must be success, failure, ignored or overloaded", text)
	}
	*o = Outcome(i)
	return nil
}
