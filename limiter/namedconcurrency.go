package limiter

import (
	"context"
	"errors"

	"github.com/weir-go/weir/stat"
)

// NamedConcurrency is a [Concurrency] with a name and statistics: a [stat.Source] for exporters.
//
// All methods are safe for concurrent use; Acquire blocks.
type NamedConcurrency struct {
	*statistics
	inner *Concurrency
}

// NewNamedConcurrency gives a bound on calls in flight a name. It panics with the error of c.Validate where there is
// one, where the name is empty, and where l is nil.
func NewNamedConcurrency(name string, l *Concurrency, c NamedConfig) *NamedConcurrency {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	if name == "" {
		panic(errors.New("limiter: the name is empty"))
	}
	if l == nil {
		panic(errors.New("limiter: the limiter to name is nil"))
	}
	return &NamedConcurrency{inner: l, statistics: newStatistics(name, c, nil)}
}

// TryAcquire is [Concurrency.TryAcquire]. In shadow mode ok is always true, and release does nothing for a call for which
// there was no room.
func (l *NamedConcurrency) TryAcquire() (release func(), ok bool) {
	release, ok = l.enter()
	r := l.now(ok)
	l.count(&r, 1)
	return release, r.OK
}

// enter lets a call in if there is room; in shadow mode it has something to release also where there is none.
func (l *NamedConcurrency) enter() (release func(), ok bool) {
	if release, ok = l.inner.TryAcquire(); !ok && l.shadows() {
		release = func() {}
	}
	return release, ok
}

// Acquire is [Concurrency.Acquire]; errors carry the name. In shadow mode it does not wait.
func (l *NamedConcurrency) Acquire(ctx context.Context) (release func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	release, ok := l.enter()
	if ok || l.shadows() {
		r := l.now(ok)
		l.count(&r, 1)
		return release, nil
	}
	err = l.await(1, func() error {
		release, err = l.inner.Acquire(ctx)
		return err
	})
	return release, err
}

// Concurrency returns the bound, which may be changed at any time.
func (l *NamedConcurrency) Concurrency() *Concurrency { return l.inner }

// now is how things stand after a call has, or has not, been let in.
func (l *NamedConcurrency) now(ok bool) Result {
	limit := l.inner.Limit()
	return Result{OK: ok, Limit: limit, Remaining: max(limit-l.inner.InFlight(), 0)}
}

// Observe yields the statistics: see [stat.Source].
func (l *NamedConcurrency) Observe(yield func(*stat.Series, float64) bool) {
	now := l.now(true)
	_ = l.observe(yield) && yield(l.series.available, float64(now.Remaining)) && yield(l.series.limit, float64(now.Limit))
}
