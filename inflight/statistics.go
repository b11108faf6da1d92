package inflight

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/friend"
	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/internal/sentinel"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
)

// The outcomes of a call.
const (
	refused   = instrument.Refused
	cancelled = instrument.Cancelled
	shadowed  = instrument.Shadowed
)

// limiters are functions of package limiter beyond its API.
var limiters = limiter.Inside(friend.Key{})

// statistics counts the calls of a limiter with a name. A limiter without a name has a nil
// *statistics, whose methods count nothing.
type statistics struct {
	shadow atomic.Bool
	calls  limiter.Requests // except those allowed at once, which the slots count
	bound  *instrument.InFlightSeries
}

func newStatistics(c Config) *statistics {
	if c.Name == "" {
		return nil
	}
	s := &statistics{bound: instrument.NewInFlightSeries(c.Name)}
	limiters.InitRequests(&s.calls, c.Name, time.Now())
	s.shadow.Store(c.Shadow)
	return s
}

func (s *statistics) count(outcome int) {
	if s != nil {
		limiters.Count(&s.calls, outcome)
	}
}

// countNearLimit counts a call that got a slot without a wait while most of the limit is in use.
// The type slots counts all calls that get a slot without a wait.
func (s *statistics) countNearLimit(inFlight uint32, limit *atomic.Uint32) {
	if s != nil && 5*inFlight > 4*limit.Load() {
		limiters.CountNear(&s.calls)
	}
}

func (s *statistics) isShadow() bool { return s != nil && s.shadow.Load() }

// allowInShadow reports whether a call without a slot is allowed, and counts it then.
func (s *statistics) allowInShadow() bool {
	if !s.isShadow() {
		return false
	}
	s.count(shadowed)
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
		limiters.CountWaiting(&s.calls)
		limiters.EndCall(&s.calls, time.Since(began), true)
	case errors.Is(err, sentinel.ErrRefused):
		s.count(refused)
		if full, ok := errors.AsType[*FullError](err); ok && full.reason == queueFull {
			limiters.CountQueueFull(&s.calls)
		}
	default:
		s.count(cancelled)
	}
}

// Stats returns the statistics, which are zero if the limiter has no name. A request is a call
// here, and a token is a slot: see [limiter.Stats].
func (l *Limiter) Stats() (s limiter.Stats) {
	if l.statistics == nil {
		return s
	}
	s = l.statistics.calls.Stats()
	s.Allowed, s.Waiting = l.state.gotSlotAtOnce(), l.queue.length.Load()
	return s
}

// Histograms yields the waiting times of the calls that got a slot after a wait. It yields nothing
// until there is such a call.
func (l *Limiter) Histograms(yield func(*stat.Series, stat.Histogram) bool) {
	if l.statistics != nil {
		l.statistics.calls.Histograms(yield)
	}
}

// Observe yields the metrics of the limiter (see [stat.Source]), or nothing if it has no name.
func (l *Limiter) Observe(yield func(*stat.Series, float64) bool) {
	s := l.statistics
	if s == nil {
		return
	}
	o := limiters.Observed(l.state.gotSlotAtOnce(), l.queue.length.Load(), false, true, s.isShadow())
	_ = limiters.Observe(&s.calls, o, yield) && s.bound.Yield(l.bound(), yield)
}
