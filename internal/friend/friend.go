// Package friend lets the packages of this module use more of each other than their pages show.
// Packages alert, breaker, inflight, limiter and throttle have a function Inside, and some types a
// method Inside. It returns a value whose methods are for the other packages of the module. It
// takes a [Key], which only packages of this module can name. The other types are those that these
// methods exchange.
package friend

import "time"

// Key opens a package. The zero value is the only one.
type Key struct{ _ int }

// GateMaker makes the gate of each new key of a weir.Group. B is breaker.Breaker.
type GateMaker[K comparable, B any] interface {
	// NewGate returns the gate of a new key. A lock of the group of breakers is held.
	NewGate(key K, b *B) Gate
}

// Gate is a gate, as the group of its breaker sees it.
type Gate interface {
	// IsBusy reports whether calls of the gate hold slots.
	IsBusy() bool
}

// Untimed is the start of a call in flight whose start is not known.
const Untimed time.Duration = -1

// Rule is the state of an alert rule after its latest evaluation, for the live page.
type Rule struct {
	Name, Severity string
	Threshold      float64
	Below          bool      // the value is bad below the threshold; otherwise above it
	Unit           string    // of the value and the threshold: "ratio", "s" or ""
	Keys           int       // how many members fire, if the rule has members
	Worst          string    // the key of the one with the worst value
	NoData         string    // why the value had no data, and what that means, or "" if it had some
	Silenced       int       // how many firing alerts a silence holds back
	Since          time.Time // when the oldest of the firing alerts fired
	// Fault is why the latest evaluation failed, as the attribute error.type of metrics, or "".
	Fault        string
	FailingSince time.Time     // the first failed evaluation since the last success, or zero
	Interval     time.Duration // between evaluations
}

// Notifier is the state of a notifier of alerts after its latest attempt, for the live page.
type Notifier struct {
	Name         string
	FailingSince time.Time // the first of the attempts that failed since the last success, or zero
	LastError    string    // of the latest attempt that failed
	DroppedAt    time.Time // when it last gave up a notification, or zero
}

// Cloner is a key that is part of something large. A limiter.Group stores the result of Clone
// instead of a new key, and calls it under a lock. The key keeps out methods of users' keys.
type Cloner[K any] interface{ Clone(k Key) K }

// Limiter is a limiter of another package that counts its requests, as gates and a limiter.Joint
// see it. R is limiter.Result.
type Limiter[R any] interface {
	// IsItself reports whether l is the limiter. It is not if l is a type of a user that embeds it.
	IsItself(l any) bool
	// PeekAt returns whether TakeAt would take the tokens after ahead other tokens were taken, and
	// what is left now. It takes nothing.
	PeekAt(t time.Time, ahead int64, n int) R
	// TakeAt takes n tokens or none. It does not count the request, and ignores shadow mode.
	TakeAt(t time.Time, n int) R
	// Record counts a request that TakeAt answered with r, and returns the answer for the caller.
	Record(r R, n int) R
	IsShadow() bool
	MaxKeys() int
}
