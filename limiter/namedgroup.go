package limiter

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/weir-go/weir/stat"
)

// NamedGroup is a [Group] with a name and statistics: a [stat.Source] for exporters. What is counted is the sum over
// all keys: no key ever is the label of a metric.
//
// All methods are safe for concurrent use; Wait and WaitAtMost block. Peeks are not counted.
type NamedGroup[K comparable] struct {
	*statistics
	inner *Group[K]
}

// NewNamedGroup gives a group a name. It panics with the error of c.Validate where there is one, and where g is nil.
func NewNamedGroup[K comparable](name string, g *Group[K], c NamedConfig) *NamedGroup[K] {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	if g == nil {
		panic(errors.New("limiter: the group to name is nil"))
	}
	return &NamedGroup[K]{inner: g, statistics: newStatistics(name, c, nil)}
}

// Take takes n tokens of the key, all or none. In shadow mode the result is OK also where none were
// taken, with the numbers of the refusal.
func (l *NamedGroup[K]) Take(key K, n int) Result {
	r := l.inner.Take(key, n)
	l.count(&r, n)
	return r
}

// TakeAt is Take at a given time.
func (l *NamedGroup[K]) TakeAt(t time.Time, key K, n int) Result {
	r := l.inner.TakeAt(t, key, n)
	l.count(&r, n)
	return r
}

// Refund gives n tokens back to the key. It takes back nothing that has been counted.
func (l *NamedGroup[K]) Refund(key K, n int) { l.inner.Refund(key, n) }

// Hold admits nothing for the key for d: see [Group.Hold].
func (l *NamedGroup[K]) Hold(key K, d time.Duration) { l.inner.Hold(key, d) }

// Wait waits for n tokens of the key as the group does; errors carry the name. In shadow mode it does not wait.
func (l *NamedGroup[K]) Wait(ctx context.Context, key K, n int) error {
	return l.WaitAtMost(ctx, key, n, Never)
}

// WaitAtMost is Wait that gives up at once where it would take longer than maxWait.
func (l *NamedGroup[K]) WaitAtMost(ctx context.Context, key K, n int, maxWait time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r := l.inner.Take(key, n)
	if r.OK || l.shadow {
		l.count(&r, n)
	}
	if r.OK || peeked(r, n) {
		return nil
	}
	return l.await(n, func() error { return l.inner.WaitAtMost(ctx, key, n, maxWait) })
}

// Group returns the group.
func (l *NamedGroup[K]) Group() *Group[K] { return l.inner }

// Observe yields the statistics: see [stat.Source]. It takes the locks of the group's parts one after the other, for a
// moment each.
func (l *NamedGroup[K]) Observe(yield func(*stat.Series, float64) bool) {
	if !l.observe(yield) || !yield(l.series.keys, float64(l.inner.Len())) ||
		!yield(l.series.evictions, float64(l.inner.Evictions())) {
		return
	}
	if limit := l.inner.Limit(); limit < math.MaxInt && yield(l.series.limit, float64(limit)) {
		yield(l.series.period, l.inner.Period().Seconds())
	}
}
