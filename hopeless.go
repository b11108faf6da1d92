package weir

import (
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/internal/latency"
)

// testEvery is how often a hopeless call is allowed.
const testEvery = time.Second

// HopelessError is the error of a call whose deadline is too near: see Config.RefuseHopeless. It
// matches ErrRefused, but not context.DeadlineExceeded, because the deadline has not passed.
type HopelessError struct {
	// Name is the name of the gate.
	Name string
	// Left is the time until the deadline of the call.
	Left time.Duration
	// Chance is the estimated share of calls that succeed within Left, from 0 to 0.05.
	Chance float64
}

func (e *HopelessError) Error() string {
	return fmt.Sprintf("gate %s: the deadline is in %v, and only %.1f%% of the calls succeed within that time",
		strconv.Quote(e.Name), e.Left.Round(time.Microsecond), 100*e.Chance)
}

// Is reports whether the target is ErrRefused.
func (e *HopelessError) Is(target error) bool { return target == ErrRefused }

// RetryAfter returns 1s. After that time the gate allows another hopeless call as a test, and may
// have learned that the service has become faster. A retry with more time until its deadline may be
// allowed at once.
func (e *HopelessError) RetryAfter() time.Duration { return testEvery }

// chances estimates how long calls take until they succeed.
type chances struct {
	survival latency.Survival
	epoch    time.Time
	testAt   atomic.Int64 // when the next hopeless call is allowed
}

// ended records a call that began at start. A call that failed or was ignored is recorded as one
// that might have succeeded later.
//
// test reports that the call was a hopeless one that was allowed as a test. The success of such a
// call is so improbable that the estimate must be wrong, so the gate forgets it and learns a new
// one. Without that, the gate would refuse calls until it has forgotten the calls of a slow time.
func (c *chances) ended(start time.Duration, test bool, o breaker.Outcome) {
	if test && o == breaker.Success {
		c.survival.Forget()
	}
	at := time.Since(c.epoch)
	c.survival.Record(int64(at), at-start, o == breaker.Success)
}

// mayTest reports whether a hopeless call is allowed at the time, and allows no other for a second.
func (c *chances) mayTest(at int64) bool {
	due := c.testAt.Load()
	// A time long before due means that the clock of the gate has gone back.
	return (at >= due || due-at > 2*int64(testEvery)) && c.testAt.CompareAndSwap(due, at+int64(testEvery))
}

// refuseHopeless returns the error for a call whose success before its deadline is improbable, or
// marks it as a test. If the breaker would refuse a hopeless call too, its error is returned. A
// half-open breaker gets no hopeless call as a probe, because the result of such a call would show
// nothing.
func (g *setup) refuseHopeless(a *attempt) error {
	deadline, ok := a.ctx.Deadline()
	if !ok {
		return nil
	}
	at := int64(a.now.Sub(g.epoch))
	estimate, left := g.chances.survival.Estimate(at), deadline.Sub(a.now)
	if estimate.Until == 0 || left > estimate.Until {
		return nil
	}
	if err := inBreaker.CheckAt(g.breaker, a.now); err != nil {
		return err
	}
	if a.test || g.breaker.State() != breaker.HalfOpen && g.chances.mayTest(at) {
		a.test = true
		return nil
	}
	g.admissions().hopeless.Add(1)
	return &HopelessError{Name: g.name, Left: max(left, 0), Chance: estimate.Chance(left)}
}

// setChances lets the gate refuse hopeless calls, by the estimate that it has, or by a new one.
func (g *setup) setChances() {
	if g.chances = g.setup.Load().chances; g.chances == nil {
		g.chances = &chances{epoch: g.epoch}
	}
}
