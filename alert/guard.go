package alert

import (
	"context"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// fault is what went wrong in an evaluation. Its text is the error.type of the figures.
type fault uint8

const (
	noFault fault = iota
	panicked
	hung
	exited
	notFinite
	tooMany
	sameLabel
	faults // how many there are
)

func (f fault) String() string {
	return [faults]string{"", "panic", "timeout", "goexit", "not_finite", "too_many_members", "same_key_text"}[f]
}

// grace is what user code gets to return in, once its context is done.
const grace = 100 * time.Millisecond

// guard runs user code that may panic, end its goroutine or never come back. Code
// that does not come back is left alone on its goroutine; until it does come back
// the guard starts nothing else, so that at most one goroutine is ever lost.
type guard struct{ busy atomic.Bool }

// outcome is how a guarded call went.
type outcome struct {
	fault  fault
	detail any    // what it panicked with
	stack  []byte //
}

// call runs fn and waits for it until the context is done, and a grace more.
// What fn writes may be read only if there was no fault.
func (g *guard) call(ctx context.Context, fn func()) outcome {
	if !g.busy.CompareAndSwap(false, true) {
		return outcome{fault: hung}
	}
	done := make(chan outcome, 1)
	go g.run(fn, done)
	select {
	case o := <-done:
		return o
	case <-ctx.Done():
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case o := <-done:
		return o
	case <-timer.C:
		return outcome{fault: hung}
	}
}

func (g *guard) run(fn func(), done chan<- outcome) {
	o := outcome{fault: exited}
	defer func() {
		g.busy.Store(false)
		done <- o
	}()
	o = protect(fn)
}

// protect runs fn and recovers its panic: no caller above it on its goroutine could.
func protect(fn func()) (o outcome) {
	defer func() {
		if p := recover(); p != nil {
			o = outcome{fault: panicked, detail: p, stack: debug.Stack()}
		}
	}()
	fn()
	return outcome{}
}
