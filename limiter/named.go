package limiter

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/weir-go/weir/stat"
)

// NamedConfig says what a [Named], [NamedGroup] or [NamedConcurrency] does beside counting.
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

// Named is a limiter with a name and statistics: a [stat.Source] for exporters.
//
// All methods are safe for concurrent use; Wait and WaitAtMost block. Peeks are not counted.
type Named struct {
	books
	inner  Limiter
	waiter WaitLimiter                         // inner, where that can be waited for
	period interface{ Period() time.Duration } // inner, where it has one
	holder Holder                              // inner, where it is one
}

// NewNamed gives a limiter a name. Wait and WaitAtMost are those of l; where l is no [WaitLimiter] they do not wait, but take or
// refuse at once. It panics with the error of c.Validate where there is one, and where l is nil.
func NewNamed(name string, l Limiter, c NamedConfig) *Named {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	if l == nil {
		panic(errors.New("limiter: the limiter to name is nil"))
	}
	n := &Named{inner: l}
	n.waiter, _ = l.(WaitLimiter)
	n.period, _ = l.(interface{ Period() time.Duration })
	n.holder, _ = l.(Holder)
	n.open(name, c)
	return n
}

// Take takes n permits, all or none. In shadow mode the result is OK also where none were
// taken, with the numbers of the refusal.
func (l *Named) Take(n int) Result { return l.count(l.inner.Take(n), n) }

// TakeAt is Take at a given time. A limiter that is no [TimedLimiter] takes now.
func (l *Named) TakeAt(t time.Time, n int) Result { return l.count(takeAt(l.inner, t, n), n) }

// Refund gives n permits back. It takes back nothing that has been counted.
func (l *Named) Refund(n int) { l.inner.Refund(n) }

// RefundAt gives n permits back that were taken at a time, where the limiter has a RefundAt, and else as Refund does.
func (l *Named) RefundAt(taken time.Time, n int) { refundAt(l.inner, taken, n) }

// refundAt refunds permits that were taken at a time, by a limiter for which that makes a difference.
func refundAt(l Limiter, taken time.Time, n int) {
	if r, ok := l.(interface{ RefundAt(taken time.Time, n int) }); ok {
		r.RefundAt(taken, n)
	} else {
		l.Refund(n)
	}
}

// Hold admits nothing for d, where the limiter is a [Holder].
func (l *Named) Hold(d time.Duration) {
	if l.holder != nil {
		l.holder.Hold(d)
	}
}

// Period is that of the limiter, and 0 where it has none.
func (l *Named) Period() time.Duration {
	if l.period == nil {
		return 0
	}
	return l.period.Period()
}

// Wait waits for n permits as the limiter does; errors carry the name. In shadow mode it does not wait.
func (l *Named) Wait(ctx context.Context, n int) error { return l.WaitAtMost(ctx, n, Never) }

// WaitAtMost is Wait that gives up at once where it would take longer than maxWait.
func (l *Named) WaitAtMost(ctx context.Context, n int, maxWait time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r := l.try(n)
	if r.OK || peeked(r, n) {
		return nil
	}
	if l.shadow || l.waiter == nil {
		return l.sign(refused(r, n))
	}
	return l.await(n, func() error { return l.waiter.WaitAtMost(ctx, n, maxWait) })
}

// trier is a limiter that may count refused requests.
type trier interface {
	// try is Take that counts no refusal, for a request that then waits.
	try(n int) Result
}

// try takes n permits. It counts what it answers, unless the request is refused and then waits.
func (l *Named) try(n int) Result {
	if l.shadow || l.waiter == nil {
		return l.Take(n)
	}
	var r Result
	if t, ok := l.inner.(trier); ok {
		r = t.try(n)
	} else {
		r = l.inner.Take(n)
	}
	if r.OK {
		l.count(r, n)
	}
	return r
}

func (l *Named) peek(r *Result, t time.Time, ahead int64, n int) {
	if m, ok := l.inner.(member); ok {
		m.peek(r, t, ahead, n)
	} else {
		*r = peek(l.inner, t, n)
	}
	r.OK = r.OK || l.shadow && n != 0
}

// refuse counts a request to a Joint that was refused, if it is this limiter that refuses it.
func (l *Named) refuse(t time.Time, n int) {
	var r Result
	if l.peek(&r, t, 0, n); !r.OK {
		l.count(r, n)
	}
	if m, ok := l.inner.(refuser); ok {
		m.refuse(t, n)
	}
}

func (l *Named) lacksRoom(n int) bool { return !l.shadow && lacksRoom(l.inner, n) }

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

// Observe yields the statistics: see [stat.Source]. It peeks at the limiter.
func (l *Named) Observe(yield func(*stat.Series, float64) bool) {
	if !l.observe(yield) {
		return
	}
	r := l.inner.Take(0)
	if r.Limit == math.MaxInt || !yield(l.series.available, float64(r.Remaining)) || !yield(l.series.limit, float64(r.Limit)) {
		return
	}
	if d := l.Period(); d > 0 {
		yield(l.series.period, d.Seconds())
	}
}
