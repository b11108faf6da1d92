package weir

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/bridge"
	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/internal/latency"
	"github.com/weir-go/weir/internal/places"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
)

// Admissions returns how many calls the gate's limits have allowed and refused. Refused includes
// the calls that a hold has refused. Shadowed and Near are 0. Without a limit, only the calls that
// a hold has refused are counted. For a gate of a [Group] the counts are those of all gates of the
// group.
func (g *Gate) Admissions() limiter.Stats {
	s := g.admissions.stats()
	s.Allowed += g.gotSlotAtOnce()
	return s
}

// gotSlotAtOnce returns the number of calls that got a slot without a wait and are counted by the
// bound on calls in flight.
func (g *Gate) gotSlotAtOnce() int64 {
	if g.own == nil {
		return 0
	}
	l := g.own.inFlight.Load()
	if l == nil {
		return 0
	}
	return slotHooks.AtOnce(l)
}

// admissions counts the calls at the limits of a gate, or of all gates of a group.
type admissions struct {
	allowed, waited, refused, cancelled atomic.Int64

	hopeless       atomic.Int64
	hopelessSeries atomic.Pointer[stat.Series]

	waiting atomic.Int64
	waits   atomic.Pointer[latency.Histogram] // nil if MaxWait was never set

	places      atomic.Pointer[places.Places] // see Gate
	lastRefusal atomic.Pointer[sharedRefusal]
	once        sync.Once
	shared      bool // by all gates of a group
	metrics     *instrument.LimiterSeries
	bound       atomic.Pointer[instrument.InFlightSeries]
}

func (a *admissions) stats() limiter.Stats {
	return limiter.Stats{
		Allowed: a.allowed.Load(), Waited: a.waited.Load(),
		Refused: a.refused.Load(), Cancelled: a.cancelled.Load(), Waiting: a.waiting.Load(),
	}
}

// countRefused counts a call that the limits or a hold have refused.
func (g *setup) countRefused() {
	g.admissions.refused.Add(1)
	g.hold.refused()
}

// measureWaits keeps the durations of waits from now on if calls may wait.
func (a *admissions) measureWaits(longest time.Duration) {
	if longest > 0 {
		a.waits.CompareAndSwap(nil, new(latency.Histogram))
	}
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

// sameMoment bounds the difference between the Until times of two refusals that share an error.
const sameMoment = time.Microsecond

// sharedRefusal is an error that several refused calls share.
type sharedRefusal struct {
	err     limiter.LimitedError
	places  *places.Places
	maxWait time.Duration
}

// refusal returns the error of a call that is refused at once. Calls that are refused until the
// same moment share one error, so that refusals under load do not allocate. If p is not nil, p
// chooses the moment at which each refused caller should retry.
func (g *setup) refusal(e limiter.LimitedError, p *places.Places) error {
	a := g.admissions
	last := a.lastRefusal.Load()
	if last != nil && last.err.Limit == e.Limit && last.err.Reason == e.Reason && last.places == p && last.maxWait == g.longestWait {
		if early := last.err.Until.Sub(e.Until); early >= 0 && early < sameMoment {
			return &last.err
		}
	}
	next := &sharedRefusal{err: e, places: p, maxWait: g.longestWait}
	bridge.Spread(&next.err, p)
	bridge.NameMaxWait(&next.err, g.longestWait)
	a.lastRefusal.Store(next)
	return &next.err
}

// retryPlaces counts a call that the gate's limiter has refused, and returns the moments at which
// the callers of such calls should retry, or nil if the rate of the limiter is not known.
func (g *setup) retryPlaces() *places.Places {
	interval := bridge.Interval(g.limiter)
	if interval <= 0 {
		return nil
	}
	p := g.places.Load()
	if p == nil {
		g.places.CompareAndSwap(nil, places.New())
		p = g.places.Load()
	}
	p.Refuse(interval)
	return p
}
