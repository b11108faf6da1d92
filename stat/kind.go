package stat

import (
	"fmt"
	"slices"
)

// Kind says how a figure behaves over time. As text it is "counter", "up-down counter", "gauge" or
// "distribution". The zero value is no kind.
type Kind uint8

const (
	// Counter only grows during the life of its source.
	Counter Kind = iota + 1
	// UpDown grows and shrinks, and may be added up over sources.
	UpDown
	// Gauge is a value of the moment that means nothing when added up.
	Gauge
	// Distribution is a [Histogram] of values, which only grows as a counter does.
	Distribution
)

var kindNames = []string{Counter: "counter", UpDown: "up-down counter", Gauge: "gauge", Distribution: "distribution"}

func (k Kind) valid() bool { return k >= Counter && k <= Distribution }

// String returns the text of k.
func (k Kind) String() string {
	if k.valid() {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// MarshalText returns the text of k.
func (k Kind) MarshalText() ([]byte, error) {
	if !k.valid() {
		return nil, fmt.Errorf("stat: Kind is %d, must be Counter, UpDown, Gauge or Distribution", uint8(k))
	}
	return []byte(kindNames[k]), nil
}

// UnmarshalText sets k to the kind of that text.
func (k *Kind) UnmarshalText(text []byte) error {
	i := Kind(slices.Index(kindNames, string(text)))
	if len(text) == 0 || !i.valid() {
		return fmt.Errorf("stat: Kind is %.60q, must be counter, up-down counter, gauge or distribution", text)
	}
	*k = i
	return nil
}
