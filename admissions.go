package weir

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/internal/latency"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
)

// Admissions returns how many calls the gate's limits have allowed and refused. Refused includes
// the calls that a hold has refused. Shadowed and Near are 0. Without a limit, only the calls that
// a hold has refused are counted. For a gate of a [Group] the counts are those of all gates of the
// group.
func (g *Gate) Admissions() limiter.Stats {
	s := g.admissions.stats()
	s.Allowed += g.atOnce()
	return s
}

// atOnce returns the number of calls that are counted with the slots in flight.
func (g *Gate) atOnce() int64 {
	if !g.counting {
		return 0
	}
	return slotHooks.AtOnce(g.inFlight)
}

// admissions counts the calls at the limits of a gate, or of all gates of a group.
type admissions struct {
	allowed, waited, refused, cancelled atomic.Int64

	hopeless       atomic.Int64
	hopelessSeries atomic.Pointer[stat.Series]

	waiting atomic.Int64
	maxWait atomic.Int64                      // nanoseconds; here because all gates of a group share it
	waits   atomic.Pointer[latency.Histogram] // nil if MaxWait was never set

	lastRefusal atomic.Pointer[limiter.LimitedError]
	once        sync.Once
	metrics     *instrument.LimiterSeries
	bound       atomic.Pointer[instrument.InFlightSeries]
}

func (a *admissions) stats() limiter.Stats {
	return limiter.Stats{
		Allowed: a.allowed.Load(), Waited: a.waited.Load(),
		Refused: a.refused.Load(), Cancelled: a.cancelled.Load(), Waiting: a.waiting.Load(),
	}
}

func (a *admissions) setMaxWait(d time.Duration) {
	if d > 0 && a.waits.Load() == nil {
		a.waits.CompareAndSwap(nil, new(latency.Histogram))
	}
	a.maxWait.Store(int64(d))
}

// beginWait counts a call that waits. endWait must follow.
func (a *admissions) beginWait() (began time.Time) {
	a.waiting.Add(1)
	return time.Now()
}

func (a *admissions) endWait(began time.Time, allowed bool) {
	a.waiting.Add(-1)
	if waits := a.waits.Load(); allowed && waits != nil {
		waits.Record(time.Since(began))
	}
}

// sameMoment is how much earlier than another a refusal may end to share its error.
const sameMoment = time.Microsecond

// refusal returns the error of a refused call. Calls that are refused until the same moment share
// one error, so that refusals under load do not allocate.
func (a *admissions) refusal(name string, reason limiter.Reason, limit int, until time.Time) error {
	if e := a.lastRefusal.Load(); e != nil && e.Limit == limit && e.Reason == reason {
		if early := e.Until.Sub(until); early >= 0 && early < sameMoment {
			return e
		}
	}
	e := &limiter.LimitedError{Name: name, Reason: reason, Limit: limit, Until: until}
	a.lastRefusal.Store(e)
	return e
}
