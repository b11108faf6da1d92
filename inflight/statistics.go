package inflight

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/internal/latency"
	"github.com/weir-go/weir/internal/sentinel"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/window"
)

// The outcomes of a call.
const (
	allowed   = instrument.Allowed
	refused   = instrument.Refused
	waited    = instrument.Waited
	cancelled = instrument.Cancelled
	shadowed  = instrument.Shadowed
)

// statistics counts the calls of a limiter with a name. A limiter without a name has a nil
// *statistics, whose methods count nothing.
type statistics struct {
	shadow atomic.Bool
	// except those allowed at once, which the slots count
	counts [instrument.LimiterOutcomes]atomic.Int64
	near   atomic.Int64
	full   atomic.Int64                      // calls for which the queue was full
	waits  atomic.Pointer[latency.Histogram] // nil until a call has waited
	series *instrument.LimiterSeries
	bound  *instrument.InFlightSeries
}

func newStatistics(c Config) *statistics {
	if c.Name == "" {
		return nil
	}
	s := &statistics{series: instrument.NewLimiterSeries(c.Name, time.Now()), bound: instrument.NewInFlightSeries(c.Name)}
	s.shadow.Store(c.Shadow)
	return s
}

func (s *statistics) count(outcome int) {
	if s != nil {
		s.counts[outcome].Add(1)
	}
}

// countNearLimit counts a call that got a slot without a wait while most of the limit is in use.
// The type slots counts all calls that get a slot without a wait.
func (s *statistics) countNearLimit(inFlight uint32, limit *atomic.Uint32) {
	if s != nil && 5*inFlight > 4*limit.Load() {
		s.near.Add(1)
	}
}

func (s *statistics) isShadow() bool { return s != nil && s.shadow.Load() }

// allowInShadow reports whether a call without a slot is allowed, and counts it then.
func (s *statistics) allowInShadow() bool {
	if !s.isShadow() {
		return false
	}
	s.counts[shadowed].Add(1)
	return true
}

func (s *statistics) now() (now time.Time) {
	if s != nil {
		now = time.Now()
	}
	return now
}

// countWait counts the end of a wait.
func (s *statistics) countWait(began time.Time, err error) {
	switch {
	case s == nil:
	case err == nil:
		s.count(waited)
		s.recordWait(time.Since(began))
	case errors.Is(err, sentinel.ErrRefused):
		s.count(refused)
		if full, ok := errors.AsType[*FullError](err); ok && full.reason == queueFull {
			s.full.Add(1)
		}
	default:
		s.count(cancelled)
	}
}

func (s *statistics) recordWait(took time.Duration) {
	waits := s.waits.Load()
	if waits == nil { // 2 KB, which most limiters never need
		s.waits.CompareAndSwap(nil, new(latency.Histogram))
		waits = s.waits.Load()
	}
	waits.Record(took)
}

// Stats returns the statistics, which are zero if the limiter has no name. A request is a call
// here, and a token is a slot: see [limiter.Stats].
func (l *Limiter) Stats() limiter.Stats {
	s := l.statistics
	if s == nil {
		return limiter.Stats{}
	}
	return limiter.Stats{
		Allowed: l.state.gotSlotAtOnce(), Waited: s.counts[waited].Load(), Refused: s.counts[refused].Load(),
		Cancelled: s.counts[cancelled].Load(), Shadowed: s.counts[shadowed].Load(),
		Near: s.near.Load(), Waiting: l.queue.length.Load(),
	}
}

// Waits returns the waiting times of the calls that got a slot after a wait. It is empty if the
// limiter has no name.
func (l *Limiter) Waits() window.Latency {
	if l.statistics != nil {
		if waits := l.statistics.waits.Load(); waits != nil {
			return window.Latency(waits.Snapshot())
		}
	}
	return window.Latency{}
}

// Histograms yields the waiting times of the calls that got a slot after a wait. It yields nothing
// until there is such a call.
func (l *Limiter) Histograms(yield func(*stat.Series, stat.Histogram) bool) {
	if l.statistics != nil && l.statistics.waits.Load() != nil {
		waits := l.Waits()
		yield(l.statistics.series.Wait, waits.Histogram())
	}
}

// Observe yields the metrics of the limiter (see [stat.Source]), or nothing if it has no name.
func (l *Limiter) Observe(yield func(*stat.Series, float64) bool) {
	s := l.statistics
	if s == nil {
		return
	}
	for i := range s.counts {
		n := float64(s.counts[i].Load())
		if i == allowed {
			n = float64(l.state.gotSlotAtOnce())
		}
		if i == shadowed && !s.shadow.Load() && n == 0 {
			continue
		}
		if !yield(s.series.Requests[i], n) {
			return
		}
	}
	if !s.series.YieldQueueFull(s.full.Load(), yield) {
		return
	}
	_ = yield(s.series.Near, float64(s.near.Load())) &&
		yield(s.series.Waiting, float64(l.queue.length.Load())) &&
		s.bound.Yield(l.bound(), yield)
}
