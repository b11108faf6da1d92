// Package gatehook gives gates functions of breakers and throttles that are not part of their APIs.
// Packages breaker and throttle set its variables when they are initialized.
package gatehook

import (
	"context"
	"time"
	"unsafe"

	"github.com/weir-go/weir/internal/waiting"
)

// Hooks are functions of breakers of type B, with permits of type P and outcomes of type O. None of
// them keeps the pointer to a permit, so it may be passed through NoEscape.
type Hooks[B, P, O any] struct {
	// Admit is like Allow, but fills a zero permit in place instead of returning a copy.
	Admit func(b *B, p *P) error
	// AdmitAfter fills in a zero permit if b is closed and numbers no calls, and reports
	// whether it did. d is the time since b was made. If it reports false, nothing was refused or
	// counted, and AdmitAt decides.
	AdmitAfter func(b *B, d time.Duration, p *P) bool
	// AdmitAt is Admit at the time t.
	AdmitAt func(b *B, t time.Time, p *P) error
	// CheckAt returns the error that AllowAt would return, or nil. It counts the refusal that it
	// returns, but acquires nothing.
	CheckAt func(b *B, t time.Time) error
	// Refuse refuses a call for the given reason, even if b has closed since, and counts the
	// refusal.
	Refuse func(b *B, reason string) error
	// Watch interrupts w once when b next opens, or now if it is open. The goroutine that changes b
	// does so, after the change and outside all locks.
	Watch func(b *B, w Watcher)
	// Unwatch ends Watch, and reports whether w was not interrupted.
	Unwatch func(b *B, w Watcher) bool
	// AdmitClosed fills in a zero permit if b is closed and numbers no calls, and reports
	// whether it did. If it reports false, nothing was refused or counted.
	AdmitClosed func(b *B, p *P) bool
	// Drop makes p, which AdmitClosed or AdmitAfter has filled in, zero again.
	Drop func(p *P)
	// Judge returns the outcome of a call that returned err, or the Classify of b if that decides.
	// expired is that of Ending. The caller records the outcome with Record at the time at.
	Judge func(p *P, ctx context.Context, err error) (o O, expired bool, at time.Duration, classify func(error) O)
	// JudgeAs is Judge for a caller that has judged err itself: as o, with a wait of after that the
	// service asks for.
	JudgeAs func(p *P, ctx context.Context, err error, after time.Duration, o O) (_ O, expired bool)
	// Record records the outcome of a call that ended at the time at, which may be clock.Unread. It
	// uses p up, and reports whether the outcome counted. returned is false if the function that
	// made the call did not return.
	Record func(p *P, ctx context.Context, err error, o O, at time.Duration, returned bool) bool
	// HasLeft reports whether b was in a group that has evicted or forgotten its key.
	HasLeft func(b *B) bool
	// Find returns the breaker of a key in a group of breakers, or nil if the key has no room. key
	// is a pointer, which costs no allocation.
	Find func(group, key any) *B
	// Reconfigure changes the config of b, which is in no group, to a valid one. The caller calls
	// deliver, outside all locks, which calls the callback of b if the state has changed.
	Reconfigure func(b *B, config any) (deliver func())
	// Stretch returns by how much b lengthens a wait d that a service asks for at the time t: by
	// share · longest / 2⁶⁴, where longest is the most that b adds.
	Stretch func(b *B, t time.Time, d time.Duration) (longest time.Duration, share uint64)
	// Attached returns where a group of gates keeps the gate of b, or nil if b is not in a group.
	Attached func(b *B) Place
}

// Watcher is a caller that waits for something else before its call. Interrupt must not block and
// must not panic.
type Watcher interface{ Interrupt(c waiting.Cause) }

// Ending is how a call has ended.
type Ending[O any] struct {
	Outcome O
	// Context is the context of the call, nil if it is not known.
	Context context.Context
	// Expired reports that the call failed at its deadline, and that the outcome is Ignored because
	// the breaker takes the deadline to be too short.
	Expired bool
}

// Place holds one value. *atomic.Value implements it.
type Place interface {
	Load() any
	CompareAndSwap(old, next any) (swapped bool)
}

// Breaker holds the Hooks of package breaker.
var Breaker any

// Throttles are functions of throttles of type T, with outcomes of type O.
type Throttles[T, O any] struct {
	// Record records the outcome of a call that t has allowed.
	Record func(t *T, o O)
	// Name returns the name of t.
	Name func(t *T) string
}

// Throttle holds the Throttles of package throttle.
var Throttle any

// NoEscape returns p and hides it from escape analysis. The compiler assumes that a function that
// is called through a variable keeps its arguments, so without NoEscape each call of a gate would
// allocate its permit.
//
// It must not be inlined: its caller would keep the result as an integer, which is wrong after a
// call that moves the stack.
//
//go:noinline
//go:nosplit
//go:nocheckptr
func NoEscape[T any](p *T) *T {
	x := uintptr(unsafe.Pointer(p))
	return (*T)(unsafe.Add(nil, x))
}

// Replays holds methods that change the state of a breaker at the time t. B is the type of the
// breaker and S that of its state. Tests that replay recorded behavior use them.
type Replays[B, S any] struct {
	ForceAt   func(b *B, t time.Time, s S)
	ReleaseAt func(b *B, t time.Time)
	OpenForAt func(b *B, t time.Time, d time.Duration)
	ResetAt   func(b *B, t time.Time)
}

// Replay is set by package breaker.
var Replay any
