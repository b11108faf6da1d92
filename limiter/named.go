package limiter

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/stat"
)

// NamedConfig says what a [Named] does beside counting.
type NamedConfig struct {
	// Near is the share of the limit beyond which permits count as near the limit, above 0 and at most 1. Default: 0.8.
	Near float64
	// Shadow lets through what the limiter refuses, and counts it as shadowed: to see what a limit would do before
	// it does it. Default: what is refused is refused.
	Shadow bool
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
// All methods are safe for concurrent use; Wait and TryWait block. Peeks are not counted.
type Named struct {
	name   string
	inner  Limiter
	waiter Waiter // inner, where that can be waited for
	near   float64
	shadow bool

	counts  [outcomes]tally
	nearby  atomic.Int64
	waiting atomic.Int64
	series  namedSeries
}

// NewNamed gives a limiter a name. Wait and TryWait are those of l; where l is no [Waiter] they do not wait, but take or
// refuse at once. It panics with the error of c.Validate where there is one, and where l is nil.
func NewNamed(name string, l Limiter, c NamedConfig) *Named {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	if l == nil {
		panic(errors.New("limiter: the limiter to name is nil"))
	}
	if c.Near == 0 {
		c.Near = 0.8
	}
	w, _ := l.(Waiter)
	n := &Named{name: name, inner: l, waiter: w, near: c.Near, shadow: c.Shadow}
	n.series.build(name, c.Shadow)
	return n
}

// Name is the name.
func (l *Named) Name() string { return l.name }

// Take takes n permits, all or none. In shadow mode the result is OK also where none were
// taken, with the numbers of the refusal.
func (l *Named) Take(n int) Result { return l.count(l.inner.Take(n), n) }

// TakeAt is Take at a given time.
func (l *Named) TakeAt(t time.Time, n int) Result { return l.count(l.inner.TakeAt(t, n), n) }

// Refund gives n permits back. It takes back nothing that has been counted.
func (l *Named) Refund(n int) { l.inner.Refund(n) }

// Wait waits for n permits as the limiter does; errors carry the name. In shadow mode it does not wait.
func (l *Named) Wait(ctx context.Context, n int) error { return l.TryWait(ctx, n, Never) }

// TryWait is Wait that gives up at once where it would take longer than limit.
func (l *Named) TryWait(ctx context.Context, n int, limit time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if r := l.inner.Take(n); r.OK || l.shadow || l.waiter == nil {
		if l.count(r, n).OK {
			return nil
		}
		return l.sign(refused(r, n))
	}
	l.waiting.Add(1)
	err := l.waiter.TryWait(ctx, n, limit)
	l.waiting.Add(-1)
	switch {
	case err == nil:
		l.counts[waited].add(n)
	case errors.Is(err, stat.ErrRefused):
		l.counts[refusedOnes].add(n)
	default:
		l.counts[cancelled].add(n)
	}
	return l.sign(err)
}

// sign puts the name into an error.
func (l *Named) sign(err error) error {
	if limited, ok := errors.AsType[*LimitedError](err); ok {
		limited.Name = l.name
	}
	return err
}

func (l *Named) count(r Result, n int) Result {
	switch {
	case n == 0:
	case r.OK:
		l.counts[allowed].add(n)
		l.countNear(r, n)
	case l.shadow:
		l.counts[shadowed].add(n)
		r.OK = true
	default:
		l.counts[refusedOnes].add(n)
	}
	return r
}

// countNear counts those of n permits just taken that lie beyond the share of the limit which is not near it.
func (l *Named) countNear(r Result, n int) {
	if r.Limit == math.MaxInt {
		return
	}
	used := r.Limit - r.Remaining
	if beyond := used - int(math.Floor(l.near*float64(r.Limit))); beyond > 0 {
		l.nearby.Add(int64(min(n, beyond)))
	}
}

// Stats are what a [Named] has counted since it was made.
type Stats struct {
	Allowed   Tally // admitted at once
	Waited    Tally // admitted after waiting
	Refused   Tally // not admitted
	Cancelled Tally // given up by their callers while waiting
	Shadowed  Tally // let through though the limiter refused
	Near      int64 // permits taken beyond the share of the limit that NamedConfig.Near is
	Waiting   int64 // requests that wait now
}

// Tally is a number of requests and of the permits they were for.
type Tally struct {
	Requests int64
	Permits  int64
}

// Stats returns what has been counted.
func (l *Named) Stats() Stats {
	return Stats{
		Allowed: l.counts[allowed].load(), Waited: l.counts[waited].load(), Refused: l.counts[refusedOnes].load(),
		Cancelled: l.counts[cancelled].load(), Shadowed: l.counts[shadowed].load(),
		Near: l.nearby.Load(), Waiting: l.waiting.Load(),
	}
}
