package weir

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/bridge"
	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/internal/latency"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/window"
)

// Admissions returns how many calls the gate's limits have allowed and refused. Refused includes the
// calls that a hold has refused. Shadowed and Near are 0. Without a limit, only calls that a hold has
// refused are counted. For a gate of a [Group] the counts cover all gates of the group.
func (g *Gate) Admissions() limiter.Stats { return g.admitted.load() }

func (a *admissions) load() limiter.Stats {
	return limiter.Stats{
		Allowed: a.allowed.Load(), Waited: a.waited.Load(),
		Refused: a.refused.Load(), Cancelled: a.cancelled.Load(), Waiting: a.waiting.Load(),
	}
}

// admissions counts the calls at the limits of a gate, or of all gates of a group.
type admissions struct {
	allowed, waited, refused, cancelled atomic.Int64

	waiting atomic.Int64
	maxWait atomic.Int64                      // nanoseconds; it stands here since all gates of a group share it
	waits   atomic.Pointer[latency.Histogram] // nil where no call has ever been allowed to wait

	last   atomic.Pointer[limiter.LimitedError]
	series sync.Once
	shown  *limiterSeries
}

// setMaxWait sets how long calls may wait.
func (a *admissions) setMaxWait(d time.Duration) {
	if d > 0 && a.waits.Load() == nil {
		a.waits.CompareAndSwap(nil, new(latency.Histogram))
	}
	a.maxWait.Store(int64(d))
}

// enter and leave are before and after a wait.
func (a *admissions) enter() (began time.Time) {
	a.waiting.Add(1)
	return time.Now()
}

func (a *admissions) leave(began time.Time, passed bool) {
	a.waiting.Add(-1)
	if waits := a.waits.Load(); passed && waits != nil {
		waits.Record(time.Since(began))
	}
}

// sameMoment is how far apart two refusals' ends may lie to share an error.
const sameMoment = time.Microsecond

// refusal returns the error to refuse with. All calls that are refused until the same moment share
// one error, so that refusals under load do not allocate.
func (a *admissions) refusal(name string, reason limiter.Reason, limit int, until time.Time) error {
	if e := a.last.Load(); e != nil && e.Limit == limit && e.Reason == reason {
		if early := e.Until.Sub(until); early >= 0 && early < sameMoment {
			return e
		}
	}
	e := &limiter.LimitedError{Name: name, Reason: reason, Limit: limit, Until: until}
	a.last.Store(e)
	return e
}

// limiterSeries are the lines of a gate's limiter, or of those of a group.
type limiterSeries struct {
	requests, permits        [4]*stat.Series
	available, limit, period *stat.Series
	keys, evictions          *stat.Series
	waiting, waits           *stat.Series
}

func newLimiterSeries(name string, began time.Time) *limiterSeries {
	s := &limiterSeries{
		available: instrument.LimiterAvailable.Series(name), limit: instrument.LimiterLimit.Series(name), period: instrument.LimiterPeriod.Series(name),
		keys: instrument.LimiterKeys.Series(name), evictions: instrument.LimiterEvictions.Series(name),
		waiting: instrument.LimiterWaiting.Series(name), waits: instrument.LimiterWaitDuration.Series(name),
	}
	for i, o := range [4]string{"allowed", "waited", "refused", "cancelled"} {
		s.requests[i] = instrument.LimiterRequests.Series(name, o)
		s.permits[i] = instrument.LimiterPermits.Series(name, o)
		s.requests[i].Created, s.permits[i].Created = began, began
	}
	s.evictions.Created, s.waits.Created = began, began
	return s
}

// observe yields what became of the calls, and reports whether the reader wants more.
func (a *admissions) observe(lines *limiterSeries, yield func(*stat.Series, float64) bool) bool {
	for i, n := range [4]*atomic.Int64{&a.allowed, &a.waited, &a.refused, &a.cancelled} {
		passed := float64(n.Load()) // a call takes one permit
		if !yield(lines.requests[i], passed) || !yield(lines.permits[i], passed) {
			return false
		}
	}
	return yield(lines.waiting, float64(a.waiting.Load()))
}

// observeHeld is observe without a limiter. It yields nothing until a hold has refused a call.
func (a *admissions) observeHeld(name string, began time.Time, yield func(*stat.Series, float64) bool) {
	if n := a.refused.Load(); n > 0 {
		yield(a.lines(name, began).requests[2], float64(n))
	}
}

func (a *admissions) lines(name string, began time.Time) *limiterSeries {
	a.series.Do(func() { a.shown = newLimiterSeries(name, began) })
	return a.shown
}

// histograms yields how long those waited who passed after a wait.
func (a *admissions) histograms(name string, began time.Time, yield func(*stat.Series, stat.Histogram) bool) {
	if times := a.waits.Load(); times != nil {
		waits := window.Latency(times.Snapshot())
		yield(a.lines(name, began).waits, waits.Histogram())
	}
}

// Histograms yields how long all calls of the gate's breaker took, if
// breaker.Config.Latency is set, and how long calls waited for their turn, if
// Config.MaxWait is. It takes no lock.
func (g *Gate) Histograms(yield func(*stat.Series, stat.Histogram) bool) {
	for s, h := range g.breaker.Histograms {
		if !yield(s, h) {
			return
		}
	}
	g.admitted.histograms(g.name, g.epoch, yield)
}

// Observe yields the figures of the gate's breaker and limiter. It takes no lock
// but those that the limiter takes for a look.
func (g *Gate) Observe(yield func(*stat.Series, float64) bool) {
	for s, v := range g.breaker.Observe {
		if !yield(s, v) {
			return
		}
	}
	if g.throttle != nil {
		for s, v := range g.throttle.Observe {
			if !yield(s, v) {
				return
			}
		}
	}
	if g.limiter == nil && g.remote == nil {
		g.admitted.observeHeld(g.name, g.epoch, yield)
		return
	}
	lines := g.admitted.lines(g.name, g.epoch)
	if !g.admitted.observe(lines, yield) {
		return
	}
	if g.limiter == nil {
		return
	}
	now := g.take(g.now(), 0)
	if now.Limit == math.MaxInt || !yield(lines.available, float64(now.Remaining)) || !yield(lines.limit, float64(now.Limit)) {
		return
	}
	if period := bridge.Period(g.limiter); period > 0 {
		yield(lines.period, period.Seconds())
	}
}
