package weir

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/internal/gatehook"
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

// chances estimates how long calls take until they succeed. It is a [gatehook.Listener] of calls,
// with their starts.
type chances struct {
	survival latency.Survival
	epoch    time.Time
	testAt   atomic.Int64 // when the next hopeless call is allowed
}

// Ended implements [gatehook.Listener]. A call that failed or was ignored is recorded as one that
// might have succeeded later.
func (c *chances) Ended(start time.Duration, e ending) {
	at := time.Since(c.epoch)
	c.survival.Record(int64(at), at-start, e.Outcome == breaker.Success)
}

// mayTest reports whether a hopeless call is allowed at the time, and allows no other for a second.
func (c *chances) mayTest(at int64) bool {
	due := c.testAt.Load()
	// A time long before due means that the clock of the gate has gone back.
	return (at >= due || due-at > 2*int64(testEvery)) && c.testAt.CompareAndSwap(due, at+int64(testEvery))
}

// testOf is the listener of a hopeless call that is allowed as a test. The success of such a call
// is so improbable that the estimate must be wrong, so the gate forgets it and learns a new one.
// Without that, the gate would refuse calls until it has forgotten the calls of a slow time.
type testOf chances

// Ended implements [gatehook.Listener].
func (t *testOf) Ended(start time.Duration, e ending) {
	c := (*chances)(t)
	if e.Outcome == breaker.Success {
		c.survival.Forget()
	}
	c.Ended(start, e)
}

// timedCall is the listener of a call that also has a second listener.
type timedCall struct {
	timed gatehook.Listener[breaker.Outcome]
	start time.Duration
	gatehook.Listener[breaker.Outcome]
}

// Ended implements [gatehook.Listener].
func (c *timedCall) Ended(start time.Duration, e ending) {
	c.Listener.Ended(start, e)
	c.timed.Ended(c.start, e)
}

// testCall is the context key that marks a hopeless call that is allowed as a test, while it waits.
type testCall struct{}

// acquireInTime is like acquire, but for a gate that refuses hopeless calls. They are refused
// before they take anything.
func (g *setup) acquireInTime(ctx context.Context, permit *breaker.Permit) error {
	if latest := g.currentSetup(); latest.Gate != g.Gate {
		return latest.acquire(ctx, permit)
	}
	now := g.now()
	test, err := g.refuseHopeless(ctx, now)
	if err != nil {
		return err
	}
	if test {
		ctx = context.WithValue(ctx, testCall{}, true)
	}
	if err := g.acquireSlowly(ctx, now, permit); err != nil {
		return err
	}
	if g.remote != nil || g.longestWait > 0 {
		now = g.now()
	}
	var timed gatehook.Listener[breaker.Outcome] = g.chances
	if test {
		timed = (*testOf)(g.chances)
	}
	start := now.Sub(g.epoch)
	if listener, listenStart := hooks.Told(gatehook.NoEscape(permit)); listener != nil {
		hooks.Tell(gatehook.NoEscape(permit), &timedCall{timed, start, listener}, listenStart)
	} else {
		hooks.Tell(gatehook.NoEscape(permit), timed, start)
	}
	return nil
}

// refuseHopeless returns the error for a call whose success before its deadline is improbable. test
// reports that the call is hopeless but allowed, to check the estimate. If the breaker would refuse
// a hopeless call too, its error is returned. A half-open breaker gets no hopeless call as a probe,
// because the result of such a call would show nothing.
func (g *setup) refuseHopeless(ctx context.Context, now time.Time) (test bool, err error) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return false, nil
	}
	at := int64(now.Sub(g.epoch))
	estimate, left := g.chances.survival.Estimate(at), deadline.Sub(now)
	if estimate.Until == 0 || left > estimate.Until {
		return false, nil
	}
	if err := hooks.CheckAt(g.breaker, now); err != nil {
		return false, err
	}
	if ctx.Value(testCall{}) != nil || g.breaker.State() != breaker.HalfOpen && g.chances.mayTest(at) {
		return true, nil
	}
	g.admissions.hopeless.Add(1)
	return false, &HopelessError{Name: g.name, Left: max(left, 0), Chance: estimate.Chance(left)}
}

// recheckHopeless is like refuseHopeless, but for a call that has its tokens and its slot, and may
// have waited for them.
func (g *Gate) recheckHopeless(ctx context.Context, now time.Time) error {
	s := g.setup.Load()
	if s.chances == nil {
		return nil
	}
	_, err := s.refuseHopeless(ctx, now)
	return err
}

// setChances lets the gate refuse hopeless calls, by the estimate that it has, or by a new one.
func (g *setup) setChances() {
	if g.chances = g.setup.Load().chances; g.chances == nil {
		g.chances = &chances{epoch: g.epoch}
	}
}
