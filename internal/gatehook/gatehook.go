// Package gatehook is how a gate reaches what it alone needs of a breaker and a throttle, so that
// their pages show what their users need.
package gatehook

import (
	"time"
	"unsafe"
)

// Hooks are functions of breakers, of type B, and their permits, of type P, with outcomes of type O.
// None of them keeps the permit's pointer.
type Hooks[B, P, O any] struct {
	// Admit is Allow into a zero permit, which spares copying one.
	Admit func(b *B, p *P) error
	// AdmitAfter fills in a zero permit at a time that is given as what has passed since the time
	// at which b was made, if b is closed and watches no calls in flight. It reports whether it did.
	// If it did not, nothing is refused or counted, and AdmitAt decides.
	AdmitAfter func(b *B, d time.Duration, p *P) bool
	// AdmitAt is Admit at the time t.
	AdmitAt func(b *B, t time.Time, p *P) error
	// CheckAt returns the error that AllowAt would return, and counts that refusal, or nil. It
	// acquires nothing.
	CheckAt func(b *B, t time.Time) error
	// Refuse refuses a call for the given reason, though b may have closed since. The refusal is
	// counted as those of Allow are.
	Refuse func(b *B, reason string) error
	// AfterOpen calls f(true) once when b next opens, or at once if it is open, and f(false) instead
	// if the key of b is forgotten first. f is called in the goroutine that changes b, after the
	// change and outside all locks. It must not block and must not panic. stop cancels that, and
	// reports whether it did before f was called.
	AfterOpen func(b *B, f func(opened bool)) (stop func() bool)
	// Tell has f called once with the outcome that is recorded with p, whether it counts or not.
	Tell func(p *P, f func(O))
	// Attached returns where a group of gates keeps the gate of a member's breaker, and nil for a
	// breaker that is no member.
	Attached func(b *B) Place
}

// Place holds one value. It is an atomic.Value.
type Place interface {
	Load() any
	CompareAndSwap(old, next any) (swapped bool)
}

// Breaker is set by package breaker, to the Hooks of its types.
var Breaker any

// Throttles are functions of throttles, of type T, with outcomes of type O.
type Throttles[T, O any] struct {
	// Record records the outcome of a call that t has allowed.
	Record func(t *T, o O)
	// Name is the name of t.
	Name func(t *T) string
}

// Throttle is set by package throttle, to the Throttles of its types.
var Throttle any

// NoEscape hides a pointer from escape analysis: what is called through a function value is taken
// to keep its arguments, and a permit would be allocated for each call.
//
//go:nosplit
//go:nocheckptr
func NoEscape[T any](p *T) *T {
	x := uintptr(unsafe.Pointer(p))
	// One move, so that no stack can be moved between the two: go vet does not accept
	// unsafe.Pointer(x ^ 0), as in strings.Builder, and a detour through &x would be a store and a load.
	return (*T)(unsafe.Add(nil, x))
}

// Replays are the changes by hand of breakers, of type B, into states, of type S, at the time t. Only
// tests that replay recorded behaviour need them: all else is tested by testing/synctest.
type Replays[B, S any] struct {
	ForceAt   func(b *B, t time.Time, s S)
	ReleaseAt func(b *B, t time.Time)
	OpenForAt func(b *B, t time.Time, d time.Duration)
	ResetAt   func(b *B, t time.Time)
}

// Replay is set by package breaker, to the Replays of its types.
var Replay any
