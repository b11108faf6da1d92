package alert

import (
	"context"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// faultKind is what went wrong in an evaluation or an attempt.
type faultKind uint8

const (
	noFault faultKind = iota
	panicked
	hung
	exited
	notFinite
	tooMany
	sameLabel
	tooManyAbsent
	faults // the number of faults
)

// String returns the fault as the attribute error.type of metrics.
func (f faultKind) String() string {
	return [faults]string{"", "panic", "timeout", "goexit", "not_finite", "too_many_members", "same_key_text", "too_many_absent"}[f]
}

// gracePeriod is how long user code has to return after its context is done.
const gracePeriod = 100 * time.Millisecond

// guard runs user code that may panic, end its goroutine or never return. Code that does not return
// in time is left on its goroutine. Until it returns, the guard refuses further calls, so that at
// most one goroutine is lost. Guards that share a count refuse calls while maxRunning others run.
type guard struct {
	busy    atomic.Bool
	running *atomic.Int32 // nil if the guard shares no count
}

// maxRunning is how many notifiers of one name may hang at the same time. There can be several
// because a notifier that hangs can be replaced by another, which may hang too.
const maxRunning = 4

// outcome is how a guarded call ended.
type outcome struct {
	fault faultKind
	// the label "key" of the member whose value failed; empty if no member's value failed
	key   string
	value any    // the value of the panic
	stack []byte // of the panic
}

// call runs fn until it returns, or until ctx is done and gracePeriod has passed. If the outcome
// has a fault, fn may still be running, and what it writes must not be read.
func (g *guard) call(ctx context.Context, fn func()) outcome {
	if !g.begin() {
		return outcome{fault: hung}
	}
	done := make(chan outcome, 1)
	go g.run(fn, done)
	select {
	case o := <-done:
		return o
	case <-ctx.Done():
	}
	timer := time.NewTimer(gracePeriod)
	defer timer.Stop()
	select {
	case o := <-done:
		return o
	case <-timer.C:
		return outcome{fault: hung}
	}
}

func (g *guard) begin() bool {
	if !g.busy.CompareAndSwap(false, true) {
		return false
	}
	if g.running != nil && g.running.Add(1) > maxRunning {
		g.end()
		return false
	}
	return true
}

func (g *guard) end() {
	if g.running != nil {
		g.running.Add(-1)
	}
	g.busy.Store(false)
}

func (g *guard) run(fn func(), done chan<- outcome) {
	o := outcome{fault: exited}
	defer func() {
		g.end()
		done <- o
	}()
	o = recovered(fn)
}

// recovered runs fn and returns its panic as an outcome. It runs on the goroutine of the user code:
// the monitor's own goroutine could not recover a panic there.
func recovered(fn func()) (o outcome) {
	defer func() {
		if p := recover(); p != nil {
			o = outcome{fault: panicked, value: p, stack: debug.Stack()}
		}
	}()
	fn()
	return outcome{}
}
