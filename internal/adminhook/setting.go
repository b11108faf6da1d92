package adminhook

import (
	"sync"
	"sync/atomic"
)

// Setting is a part of an object that can be set: its override, or some of its limits. The code of
// the program and other operators can set it too.
type Setting struct {
	Get func() Value
	// Set sets a valid value, and returns it with its number.
	Set func(v any, why string) Value
	// Restore returns to an earlier value and its number, unless the setting was set again after
	// set, also to the same value. It reports whether it did.
	Restore func(set, earlier Value, why string) bool
	// Check returns why a value is invalid, or nil. It is nil for settings that need no check
	// beyond that of their type.
	Check func(v any) error
}

// Value is a value of a setting, with a number that tells who has set it: no two calls of Set have
// the same number, and neither have two changes by the methods of the object.
type Value struct {
	V      any
	Number uint64
}

var lastNumber atomic.Uint64

// NextNumber returns a number that it has not returned before.
func NextNumber() uint64 { return lastNumber.Add(1) }

// Number is the number of a setting whose changes exclude each other. The zero value is that of a
// setting that was never changed.
type Number struct {
	mu     sync.Mutex
	number uint32 // the lower half, which is enough for two to differ, and fits into a gap
}

// Change calls set, which changes the setting, and gives the setting a new number.
func (n *Number) Change(set func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	set()
	n.number = uint32(NextNumber())
}

// Setting returns the setting whose value get returns and set changes. Neither may call user code.
func (n *Number) Setting(get func() any, set func(v any)) *Setting {
	return &Setting{
		Get: func() Value {
			n.mu.Lock()
			defer n.mu.Unlock()
			return Value{get(), uint64(n.number)}
		},
		Set: func(v any, _ string) Value {
			n.mu.Lock()
			defer n.mu.Unlock()
			set(v)
			n.number = uint32(NextNumber())
			return Value{v, uint64(n.number)}
		},
		Restore: func(now, earlier Value, _ string) bool {
			n.mu.Lock()
			defer n.mu.Unlock()
			if uint64(n.number) != now.Number {
				return false
			}
			set(earlier.V)
			n.number = uint32(earlier.Number)
			return true
		},
	}
}
