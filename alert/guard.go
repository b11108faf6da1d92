package alert

import (
	"context"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// fault is what went wrong in an evaluation or an attempt.
type fault uint8

const (
	noFault fault = iota
	panicked
	hung
	exited
	notFinite
	tooMany
	sameLabel
	faults // the number of faults
)

// String returns the fault as the attribute error.type of metrics.
func (f fault) String() string {
	return [faults]string{"", "panic", "timeout", "goexit", "not_finite", "too_many_members", "same_key_text"}[f]
}

// grace is how long user code has to return after its context is done.
const grace = 100 * time.Millisecond

// guard runs user code that may panic, end its goroutine or never return. Code that does not return
// in time is left on its goroutine. Until it returns, the guard refuses further calls, so that at
// most one goroutine is lost.
type guard struct{ busy atomic.Bool }

// outcome is how a guarded call ended.
type outcome struct {
	fault fault
	value any    // the value of the panic
	stack []byte // of the panic
}

// call runs fn until it returns, or ctx is done and the grace has passed. If the outcome has a
// fault, fn may still be running, and what it writes must not be read.
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
	o = recovered(fn)
}

// recovered runs fn and returns its panic as an outcome. Nothing further up the goroutine could
// recover it.
func recovered(fn func()) (o outcome) {
	defer func() {
		if p := recover(); p != nil {
			o = outcome{fault: panicked, value: p, stack: debug.Stack()}
		}
	}()
	fn()
	return outcome{}
}
