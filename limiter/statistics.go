package limiter

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/latency"
	"github.com/weir-go/weir/internal/sentinel"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/window"
)

// Stats are the requests that a limiter with a name has counted since it was made. The permits that they were for are
// among the metrics: see Observe.
type Stats struct {
	Allowed   int64 // admitted at once
	Waited    int64 // admitted after waiting
	Refused   int64 // not admitted
	Cancelled int64 // given up by their callers while waiting
	Shadowed  int64 // let through though the limiter refused
	Near      int64 // permits, not requests, taken beyond the share of the limit that NamedConfig.Near is
	Waiting   int64 // requests that wait now
}

// statistics are what is counted of a limiter with a name. A limiter without a name has none: a nil *statistics counts nothing.
type statistics struct {
	name    string
	near    float64
	shadow  atomic.Bool                             // nothing is refused
	current func() (r Result, period time.Duration) // how things stand, without taking anything

	counts  [outcomes]tally
	nearby  atomic.Int64
	waiting atomic.Int64
	lent    atomic.Int64       // permits let through in shadow mode since something was taken, which a refund must not give back
	waits   *latency.Histogram // nil where that is not asked for
	series  namedSeries
}

// newStatistics returns those of a limiter, nil if it has no name. The configuration is valid.
func newStatistics(name string, c NamedConfig, current func() (Result, time.Duration)) *statistics {
	if name == "" {
		return nil
	}
	s := &statistics{name: name, near: c.near(), current: current}
	s.shadow.Store(c.Shadow)
	if c.Waits {
		s.waits = new(latency.Histogram)
	}
	s.series.build(name)
	return s
}

// Name returns the name, which is empty where none was given.
func (s *statistics) Name() string {
	if s == nil {
		return ""
	}
	return s.name
}

// Stats returns what has been counted: zeros without a name.
func (s *statistics) Stats() Stats {
	if s == nil {
		return Stats{}
	}
	return Stats{
		Allowed: s.requests(allowed), Waited: s.requests(waited), Refused: s.requests(refusedOnes),
		Cancelled: s.requests(cancelled), Shadowed: s.requests(shadowed),
		Near: s.nearby.Load(), Waiting: s.waiting.Load(),
	}
}

// requests is how many requests had an outcome.
func (s *statistics) requests(outcome int) int64 { return s.counts[outcome].requests.Load() }

// Waits returns how long the callers waited that were admitted after a wait, if NamedConfig.Waits is set.
func (s *statistics) Waits() window.Latency {
	if s == nil || s.waits == nil {
		return window.Latency{}
	}
	return window.Latency(s.waits.Snapshot())
}

// Histograms yields how long the callers waited that were admitted after a wait, if NamedConfig.Waits is set.
func (s *statistics) Histograms(yield func(*stat.Series, stat.Histogram) bool) {
	if s != nil && s.waits != nil {
		waits := window.Latency(s.waits.Snapshot())
		yield(s.series.wait, waits.Histogram())
	}
}

// Observe yields the statistics, and nothing without a name: see [stat.Source]. It peeks at the limiter.
func (s *statistics) Observe(yield func(*stat.Series, float64) bool) {
	if s == nil || !s.observe(yield) {
		return
	}
	r, period := s.current()
	if r.Limit == math.MaxInt || !yield(s.series.available, float64(r.Remaining)) || !yield(s.series.limit, float64(r.Limit)) {
		return
	}
	if period > 0 {
		yield(s.series.period, period.Seconds())
	}
}

// count counts what was answered to a request for n. In shadow mode it makes the answer OK.
func (s *statistics) count(r *Result, n int) {
	switch {
	case s == nil || n == 0:
	case r.OK:
		s.counts[allowed].add(n)
		s.countNear(*r, n)
		if s.shadow.Load() {
			s.lent.Store(0)
		}
	case s.shadow.Load():
		s.counts[shadowed].add(n)
		s.lent.Add(int64(max(n, 0)))
		r.OK = true
	default:
		s.counts[refusedOnes].add(n)
	}
}

// shade makes OK what shadow mode lets through.
func (s *statistics) shade(r *Result, n int) {
	if s.shadows() && n != 0 {
		r.OK = true
	}
}

// sameAs reports whether a configuration is that of s, but for shadow mode.
func (s *statistics) sameAs(name string, c NamedConfig) bool {
	if s == nil {
		return name == ""
	}
	return s.name == name && s.near == c.near() && (s.waits != nil) == c.Waits
}

// shadows reports whether nothing is refused.
func (s *statistics) shadows() bool { return s != nil && s.shadow.Load() }

// owed returns how many of n permits that are given back had been taken. Those that shadow mode let through had not: of
// permits that were taken a moment ago, they are the last ones if nothing was taken since.
func (s *statistics) owed(n int) int {
	if !s.shadows() {
		return n
	}
	for n > 0 {
		lent := s.lent.Load()
		back := min(lent, int64(n))
		if s.lent.CompareAndSwap(lent, lent-back) {
			return n - int(back)
		}
	}
	return n
}

// countRefusal counts a request to a Joint that was refused, where this limiter is one that refuses it.
func (s *statistics) countRefusal(l member, t time.Time, n int) {
	if s == nil || s.shadow.Load() {
		return
	}
	var r Result
	if l.peek(&r, t, 0, n); !r.OK {
		s.count(&r, n)
	}
}

// uncounted is a limiter without its statistics.
type uncounted interface {
	// try is Take of a request that waits if it is refused.
	try(n int) Result
	waitAtMost(ctx context.Context, n int, maxWait time.Duration) error
}

// waitFor is WaitAtMost of a limiter with a name. In shadow mode it does not wait.
func (s *statistics) waitFor(ctx context.Context, l uncounted, n int, maxWait time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if r := s.admitted(l.try(n), n); r.OK || peeked(r, n) {
		return nil
	}
	return s.await(n, func() error { return l.waitAtMost(ctx, n, maxWait) })
}

// admitted counts what try has answered, unless that is a refusal, and returns it.
func (s *statistics) admitted(r Result, n int) Result {
	if r.OK || s.shadows() {
		s.count(&r, n)
	}
	return r
}

// waiterToBe is a limiter of this package that is asked before the caller waits for it.
type waiterToBe interface {
	// takeBeforeWait is Take that counts no refusal, since the wait that follows is counted.
	takeBeforeWait(n int) Result
}

func takeBeforeWait(l Limiter, n int) (r Result, ok bool) {
	w, ok := l.(waiterToBe)
	if ok {
		r = w.takeBeforeWait(n)
	}
	return r, ok
}

func (b *TokenBucket) takeBeforeWait(n int) Result { return b.admitted(b.try(n), n) }
func (m *meter) takeBeforeWait(n int) Result       { return m.admitted(m.try(n), n) }
func (b *LeakyBucket) takeBeforeWait(n int) Result { return b.admitted(b.try(n), n) }
func (k Keyed[K]) takeBeforeWait(n int) Result     { return k.group.admitted(k.try(n), n) }
func (l *Named) takeBeforeWait(n int) Result       { return l.admitted(l.try(n), n) }
func (j *Joint) takeBeforeWait(n int) Result       { return j.try(n) }

// countNear counts those of n permits just taken that lie beyond the share of the limit which is not near it.
func (s *statistics) countNear(r Result, n int) {
	if r.Limit == math.MaxInt {
		return
	}
	used := r.Limit - r.Remaining
	near := s.near * float64(r.Limit) * (1 + 0x1p-50) // 0.29 of 100 is 29, though not in floats
	if beyond := used - int(math.Floor(near)); beyond > 0 {
		s.nearby.Add(int64(min(n, beyond)))
	}
}

// await counts a wait for n.
func (s *statistics) await(n int, wait func() error) error {
	if n == 0 { // a peek
		return s.sign(wait())
	}
	s.waiting.Add(1)
	began := time.Now()
	err := wait()
	s.waiting.Add(-1)
	switch {
	case err == nil:
		s.counts[waited].add(n)
		if s.waits != nil {
			s.waits.Record(time.Since(began))
		}
	case errors.Is(err, sentinel.ErrRefused):
		s.counts[refusedOnes].add(n)
	default:
		s.counts[cancelled].add(n)
	}
	return s.sign(err)
}

// sign puts the name into an error.
func (s *statistics) sign(err error) error {
	if limited, ok := errors.AsType[*LimitedError](err); ok {
		limited.Name = s.name
	}
	return err
}

// observe yields what has been counted, and reports whether the reader wants more.
func (s *statistics) observe(yield func(*stat.Series, float64) bool) bool {
	for i := range s.counts {
		requests := s.series.requests[i]
		if i == shadowed && !s.shadow.Load() && s.requests(i) == 0 {
			continue
		}
		if !yield(requests, float64(s.requests(i))) || !yield(s.series.permits[i], float64(s.counts[i].sum())) {
			return false
		}
	}
	return yield(s.series.near, float64(s.nearby.Load())) && yield(s.series.waiting, float64(s.waiting.Load()))
}
