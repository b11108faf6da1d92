// Package waiting lets a call wait for several things at once. A call that waits has one [Waiter]:
// the queue of a limiter wakes it when its turn comes, and its gate interrupts it when the breaker
// opens or the config changes.
package waiting

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"time"
)

// Cause says why a wait was interrupted.
type Cause uint32

// The causes that end the wait of a call at a gate early.
const (
	None      Cause = iota
	Opened          // the breaker has opened
	Forgotten       // the key of the gate was forgotten
	Changed         // the config has changed
)

// ErrInterrupted is the error of a wait that was interrupted. Only gates see it.
var ErrInterrupted = errors.New("weir: the wait was interrupted")

// Forever is a time without an end.
const Forever time.Duration = math.MaxInt64

// Interrupter is a call that waits, as a breaker sees it. Interrupt must not block and must not
// panic.
type Interrupter interface{ Interrupt(c Cause) }

// Call is a call of a gate that waits. It is a [Waiter] with its place in the queue of a limiter.
type Call interface {
	Interrupter
	Cause() Cause
	Clear()
	Block(done, changed <-chan struct{}, d time.Duration) Cause
	Context(ctx context.Context) (interrupted context.Context, release context.CancelFunc)
}

// Waiter is a call that waits. It has one channel for everything that may end the wait, and one
// timer, and no goroutine of its own. Signal and Interrupt may be called by any goroutine, the
// other methods only by the one that waits. The zero value does not work: call Init.
type Waiter struct {
	wake  chan struct{} // has room for one signal
	timer *time.Timer   // sends a signal; nil until it is needed
	cause atomic.Uint32

	cancel atomic.Pointer[context.CancelFunc] // of Context; nil if there is none
}

// Init prepares the zero Waiter.
func (w *Waiter) Init() { w.wake = make(chan struct{}, 1) }

// Signal makes Block return.
func (w *Waiter) Signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Interrupt makes Block return and ends the context of Context. Only the first cause is kept.
func (w *Waiter) Interrupt(c Cause) {
	if !w.cause.CompareAndSwap(uint32(None), uint32(c)) {
		return
	}
	w.Signal()
	if cancel := w.cancel.Load(); cancel != nil {
		(*cancel)()
	}
}

// Cause returns why the wait was interrupted, or None if it was not.
func (w *Waiter) Cause() Cause { return Cause(w.cause.Load()) }

// Clear forgets an interruption.
func (w *Waiter) Clear() { w.cause.Store(uint32(None)) }

// Block blocks for at most d, or until a signal, an interruption, or one of the channels, each of
// which may be nil. It may also return for no reason. It returns why the wait was interrupted.
func (w *Waiter) Block(done, changed <-chan struct{}, d time.Duration) Cause {
	if c := Cause(w.cause.Load()); c != None { // its signal may have been received for another one
		return c
	}
	switch {
	case d == Forever:
	case w.timer == nil:
		w.timer = time.AfterFunc(d, w.Signal)
	default:
		w.timer.Reset(d)
	}
	select {
	case <-w.wake:
	case <-done:
	case <-changed:
	}
	if w.timer != nil {
		w.timer.Stop()
	}
	return Cause(w.cause.Load())
}

// Context returns a context that also ends when the wait is interrupted, for a function that does
// not know Waiters. The caller calls release afterwards.
func (w *Waiter) Context(ctx context.Context) (_ context.Context, release context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	w.cancel.Store(&cancel)
	if w.Cause() != None { // Interrupt may have come before Store
		cancel()
	}
	return ctx, func() {
		w.cancel.Store(nil)
		cancel()
	}
}
