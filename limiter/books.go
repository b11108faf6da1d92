package limiter

import (
	"errors"
	"math"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/sentinel"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/window"
)

// Stats are what a [Named], [NamedGroup] or [NamedConcurrency] has counted since it was made.
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
	Requests int64 // for at least one permit each
	Permits  int64 // that they were for, added up
}

// books are what is counted under a name.
type books struct {
	name   string
	near   float64
	shadow bool

	counts  [outcomes]tally
	nearby  atomic.Int64
	waiting atomic.Int64
	waits   *window.Times // nil where that is not asked for
	series  namedSeries
}

// open opens the books for a valid configuration.
func (b *books) open(name string, c NamedConfig) {
	b.name, b.near, b.shadow = name, c.Near, c.Shadow
	if c.Near == 0 {
		b.near = 0.8
	}
	if c.Waits {
		b.waits = new(window.Times)
	}
	b.series.build(name, c.Shadow)
}

// Name is the name.
func (b *books) Name() string { return b.name }

// Stats returns what has been counted.
func (b *books) Stats() Stats {
	return Stats{
		Allowed: b.counts[allowed].load(), Waited: b.counts[waited].load(), Refused: b.counts[refusedOnes].load(),
		Cancelled: b.counts[cancelled].load(), Shadowed: b.counts[shadowed].load(),
		Near: b.nearby.Load(), Waiting: b.waiting.Load(),
	}
}

// Waits returns how long those waited who were admitted after a wait, if NamedConfig.Waits is set.
func (b *books) Waits() window.Latency {
	if b.waits == nil {
		return window.Latency{}
	}
	return b.waits.Latency()
}

// Histograms yields how long those waited who were admitted after a wait, if NamedConfig.Waits is set.
func (b *books) Histograms(yield func(*stat.Series, stat.Histogram) bool) {
	if b.waits != nil {
		waits := b.waits.Latency()
		yield(b.series.wait, waits.Histogram())
	}
}

// count books what was answered to a request for n, and returns what to answer to the caller.
func (b *books) count(r Result, n int) Result {
	switch {
	case n == 0:
	case r.OK:
		b.counts[allowed].add(n)
		b.countNear(r, n)
	case b.shadow:
		b.counts[shadowed].add(n)
		r.OK = true
	default:
		b.counts[refusedOnes].add(n)
	}
	return r
}

// answer is count for one who takes an error.
func (b *books) answer(r Result, n int) error {
	if b.count(r, n).OK || peeked(r, n) {
		return nil
	}
	return b.sign(refused(r, n))
}

// countNear counts those of n permits just taken that lie beyond the share of the limit which is not near it.
func (b *books) countNear(r Result, n int) {
	if r.Limit == math.MaxInt {
		return
	}
	used := r.Limit - r.Remaining
	near := b.near * float64(r.Limit) * (1 + 0x1p-50) // 0.29 of 100 is 29, though not in floats
	if beyond := used - int(math.Floor(near)); beyond > 0 {
		b.nearby.Add(int64(min(n, beyond)))
	}
}

// await books a wait for n.
func (b *books) await(n int, wait func() error) error {
	if n == 0 { // a peek
		return b.sign(wait())
	}
	b.waiting.Add(1)
	began := time.Now()
	err := wait()
	b.waiting.Add(-1)
	switch {
	case err == nil:
		b.counts[waited].add(n)
		if b.waits != nil {
			b.waits.Record(time.Since(began))
		}
	case errors.Is(err, sentinel.ErrRefused):
		b.counts[refusedOnes].add(n)
	default:
		b.counts[cancelled].add(n)
	}
	return b.sign(err)
}

// sign puts the name into an error.
func (b *books) sign(err error) error {
	if limited, ok := errors.AsType[*LimitedError](err); ok {
		limited.Name = b.name
	}
	return err
}

// observe yields what has been counted, and reports whether the reader wants more.
func (b *books) observe(yield func(*stat.Series, float64) bool) bool {
	for i := range b.counts {
		s := b.series.requests[i]
		if s == nil {
			continue
		}
		if !yield(s, float64(b.counts[i].requests.Load())) || !yield(b.series.permits[i], float64(b.counts[i].load().Permits)) {
			return false
		}
	}
	return yield(b.series.near, float64(b.nearby.Load())) && yield(b.series.waiting, float64(b.waiting.Load()))
}
