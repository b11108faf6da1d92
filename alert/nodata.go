package alert

import (
	"fmt"
	"slices"
)

// NoData says what an evaluation without data means. The zero value is KeepLast. As text it is
// "keep-last", "resolve" or "fire".
type NoData uint8

const (
	// KeepLast repeats the verdict of the evaluation before: a pending alert continues to age, and a
	// firing alert continues to fire.
	KeepLast NoData = iota
	// Resolve means that the condition does not hold.
	Resolve
	// Fire means that the condition holds.
	Fire
)

var noDataNames = []string{KeepLast: "keep-last", Resolve: "resolve", Fire: "fire"}

// String returns the text of n.
func (n NoData) String() string {
	if int(n) < len(noDataNames) {
		return noDataNames[n]
	}
	return fmt.Sprintf("no data %d", uint8(n))
}

// MarshalText returns the text of n.
func (n NoData) MarshalText() ([]byte, error) {
	if int(n) >= len(noDataNames) {
		return nil, fmt.Errorf("alert: NoData is %d, must be KeepLast, Resolve or Fire", uint8(n))
	}
	return []byte(noDataNames[n]), nil
}

// UnmarshalText sets n to what the text stands for.
func (n *NoData) UnmarshalText(text []byte) error {
	i := slices.Index(noDataNames, string(text))
	if i < 0 {
		return fmt.Errorf("alert: NoData is %.60q, must be keep-last, resolve or fire", text)
	}
	*n = NoData(i)
	return nil
}
