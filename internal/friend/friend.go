// Package friend lets the packages of this module use more of each other than their pages show.
// Packages breaker, inflight, limiter and throttle have a function Inside, which returns a value
// whose methods are for the other packages. It takes a [Key], which only packages of this module
// can name.
package friend

import "time"

// Key opens a package. The zero value is the only one.
type Key struct{ _ int }

// Attachment is what a group of gates keeps with each breaker of its group of breakers.
type Attachment struct{ Gate Gate }

// Gate is a gate, as the group of its breaker sees it.
type Gate interface {
	// IsBusy reports whether calls of the gate hold slots.
	IsBusy() bool
}

// Untimed is the start of a call in flight whose start is not known.
const Untimed time.Duration = -1
