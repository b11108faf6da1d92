package limiter

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// NamedConfig says what a limiter with a name does besides counting.
type NamedConfig struct {
	// Near is the share of the limit beyond which permits count as near the limit, above 0 and at most 1. Default: 0.8.
	Near float64
	// Shadow lets through what the limiter refuses, and counts it as shadowed: to see what a limit would do before
	// it does it. Default: what is refused is refused.
	Shadow bool
	// Waits counts how long those waited who were admitted after a wait: weir.limiter.wait.duration, of 2 kB. Default: it
	// is not counted.
	Waits bool
}

// Validate returns nil for a configuration that makes sense, and otherwise an error.
func (c NamedConfig) Validate() error {
	if c.Near != 0 && !(c.Near > 0 && c.Near <= 1) {
		return fmt.Errorf("limiter: Near is %g, must be above 0 and at most 1 (or 0 for the default)", c.Near)
	}
	return nil
}

// near is Near or its default.
func (c NamedConfig) near() float64 {
	if c.Near == 0 {
		return 0.8
	}
	return c.Near
}

// validateFor is Validate for a limiter that may have no name.
func (c NamedConfig) validateFor(name string) error {
	if name == "" && c != (NamedConfig{}) {
		return errors.New("limiter: Named is set, must be left out where there is no Name")
	}
	return c.Validate()
}

// Named gives a limiter of another package, or several limiters that are joined, a name and statistics: a [stat.Source]
// for exporters. Limiters of this package have a Name in their configuration instead.
//
// All methods are safe for concurrent use; Wait and WaitAtMost block. Peeks are not counted.
type Named struct {
	*statistics
	inner  Limiter
	waiter WaitLimiter // inner, where that can be waited for
	holder holder      // inner, where it is one
}

// NewNamed gives a limiter a name. Wait and WaitAtMost are those of l; where l is no [WaitLimiter] they do not wait, but take or
// refuse at once. It panics with the error of c.Validate where there is one, where the name is empty, and where l is nil.
func NewNamed(name string, l Limiter, c NamedConfig) *Named {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	if name == "" {
		panic(errors.New("limiter: the name is empty"))
	}
	if l == nil {
		panic(errors.New("limiter: the limiter to name is nil"))
	}
	n := &Named{inner: l}
	n.waiter, _ = l.(WaitLimiter)
	n.holder, _ = l.(holder)
	n.statistics = newStatistics(name, c, func() (Result, time.Duration) { return l.Take(0), periodOf(l) })
	return n
}

// periodOf is the time to which the limit of a limiter refers, 0 if that is not known.
func periodOf(l any) time.Duration {
	if p, ok := l.(interface{ period() time.Duration }); ok {
		return p.period()
	}
	return 0
}

// Take takes n permits, all or none. In shadow mode the result is OK also where none were
// taken, with the numbers of the refusal.
func (l *Named) Take(n int) Result {
	r := l.inner.Take(n)
	l.count(&r, n)
	return r
}

// TakeAt is Take at a given time. A limiter that is no [TimedLimiter] takes now.
func (l *Named) TakeAt(t time.Time, n int) Result {
	r := l.attempt(t, n)
	l.count(&r, n)
	return r
}

// Refund gives n permits back. It takes back nothing that has been counted.
func (l *Named) Refund(n int) { l.giveBack(l.owed(n)) }

// RefundAt gives n permits back that were taken at a time, where the limiter has a RefundAt, and else as Refund does.
func (l *Named) RefundAt(taken time.Time, n int) { refundAt(l.inner, taken, l.owed(n)) }

// refundAt refunds permits that were taken at a time, by a limiter for which that makes a difference.
func refundAt(l Limiter, taken time.Time, n int) {
	if r, ok := l.(interface{ RefundAt(taken time.Time, n int) }); ok {
		r.RefundAt(taken, n)
	} else {
		l.Refund(n)
	}
}

// Hold admits nothing for d, where the limiter has a Hold.
func (l *Named) Hold(d time.Duration) {
	if l.holder != nil {
		l.holder.Hold(d)
	}
}

func (l *Named) period() time.Duration { return periodOf(l.inner) }

// Wait waits for n permits as the limiter does; errors carry the name. In shadow mode it does not wait.
func (l *Named) Wait(ctx context.Context, n int) error { return l.WaitAtMost(ctx, n, Never) }

// WaitAtMost is Wait that gives up at once where it would take longer than maxWait.
func (l *Named) WaitAtMost(ctx context.Context, n int, maxWait time.Duration) error {
	if l.waiter != nil {
		return l.waitFor(ctx, l, n, maxWait)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if r := l.Take(n); !r.OK && !peeked(r, n) {
		return l.sign(refused(r, n))
	}
	return nil
}

// trier is a limiter that may count refused requests.
type trier interface {
	// try is Take that counts no refusal, for a request that then waits.
	try(n int) Result
}

func (l *Named) try(n int) Result {
	if t, ok := l.inner.(trier); ok && !l.shadows() {
		r := t.try(n)
		if m, ours := l.inner.(member); ours && r.OK {
			m.count(&r, n)
		}
		return r
	}
	return l.inner.Take(n)
}

func (l *Named) waitAtMost(ctx context.Context, n int, maxWait time.Duration) error {
	return l.waiter.WaitAtMost(ctx, n, maxWait)
}

func (l *Named) peek(r *Result, t time.Time, ahead int64, n int) {
	if m, ok := l.inner.(member); ok {
		m.peek(r, t, ahead, n)
		m.shade(r, n)
	} else {
		*r = peek(l.inner, t, n)
	}
}

func (l *Named) attempt(t time.Time, n int) Result { return takeAt(l.inner, t, n) }
func (l *Named) giveBack(n int)                    { l.inner.Refund(n) }

// refuse counts a request to a Joint that was refused, if it is this limiter that refuses it.
func (l *Named) refuse(t time.Time, n int, waited bool) {
	l.countRefusal(l, t, n)
	if m, ok := l.inner.(refuser); ok {
		m.refuse(t, n, waited)
	}
}

func (l *Named) lacksRoom(n int) bool { return !l.shadows() && lacksRoom(l.inner, n) }

func (l *Named) watch(b bell) {
	if m, ok := l.inner.(member); ok {
		m.watch(b)
	}
}

func (l *Named) unwatch(b bell) {
	if m, ok := l.inner.(member); ok {
		m.unwatch(b)
	}
}
