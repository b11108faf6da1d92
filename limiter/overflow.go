package limiter

import (
	"fmt"
	"slices"
)

// Overflow says what a [Group] does with a new key when it is full of keys that are in use. The zero value is RefuseNew.
// As text it is "refuse-new", "pass-new" or "share-new".
type Overflow uint8

const (
	// RefuseNew refuses a new key, also where it would wait, until other keys have become idle. RetryAfter is a guess, as
	// it is not known when that will be.
	RefuseNew Overflow = iota
	// PassNew admits a new key without counting it.
	PassNew
	// ShareNew counts all new keys of a tier together, as if they were one key.
	ShareNew
)

var overflowNames = []string{RefuseNew: "refuse-new", PassNew: "pass-new", ShareNew: "share-new"}

// String returns the text of o.
func (o Overflow) String() string {
	if int(o) < len(overflowNames) {
		return overflowNames[o]
	}
	return fmt.Sprintf("overflow %d", uint8(o))
}

// MarshalText returns the text of o.
func (o Overflow) MarshalText() ([]byte, error) {
	if int(o) >= len(overflowNames) {
		return nil, fmt.Errorf("limiter: Overflow is %d, must be RefuseNew, PassNew or ShareNew", uint8(o))
	}
	return []byte(overflowNames[o]), nil
}

// UnmarshalText sets o to what the text stands for.
func (o *Overflow) UnmarshalText(text []byte) error {
	i := slices.Index(overflowNames, string(text))
	if i < 0 {
		return fmt.Errorf("limiter: Overflow is %.60q, must be refuse-new, pass-new or share-new", text)
	}
	*o = Overflow(i)
	return nil
}
