package instrument

import (
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/stat"
)

// The outcomes of a request to a limiter, as indexes of LimiterSeries.
const (
	Allowed = iota
	Refused
	Waited
	Cancelled
	Shadowed
	LimiterOutcomes // how many there are
)

// LimiterSeries holds the series of a limiter, of a group of limiters, or of the limits of a gate.
type LimiterSeries struct {
	Requests, Tokens                          [LimiterOutcomes]*stat.Series
	Near, Waiting, Wait                       *stat.Series
	Available, Limit, Period, Keys, Evictions *stat.Series

	noRoom, queueFull atomic.Pointer[stat.Series] // nil until they are yielded
}

// InFlightSeries holds the series of a bound on calls in flight.
type InFlightSeries struct {
	Calls, Limit *stat.Series
	bounding     [len(Evidence)]atomic.Pointer[stat.Series] // nil until they are yielded
}

// Evidence holds the words for the evidence on which an adaptive bound bounds the calls.
var Evidence = [...]string{"slow_calls", "overloaded", "late_failures", "silence"}

// Bound is the state of a bound on calls in flight.
type Bound struct {
	Calls, Limit int
	Evidence     int           // an index of Evidence plus 1, or 0 if the bound does not adapt now
	Bounding     time.Duration // for how long, if Evidence is not 0
}

// NewInFlightSeries returns the series for a name.
func NewInFlightSeries(name string) *InFlightSeries {
	return &InFlightSeries{Calls: InFlightCalls.Series(name), Limit: InFlightLimit.Series(name)}
}

// Yield yields the state of the bound. It reports whether yield wants more.
func (s *InFlightSeries) Yield(b Bound, yield func(*stat.Series, float64) bool) bool {
	return yield(s.Calls, float64(b.Calls)) && yield(s.Limit, float64(b.Limit)) &&
		(b.Evidence == 0 || yield(s.boundingBy(b.Evidence-1), b.Bounding.Seconds()))
}

func (s *InFlightSeries) boundingBy(evidence int) *stat.Series {
	series := &s.bounding[evidence]
	if series.Load() == nil {
		series.CompareAndSwap(nil, InFlightBounding.Series(s.Calls.Values[0], Evidence[evidence]))
	}
	return series.Load()
}

// NewLimiterSeries returns the series for a name. Those of counters began at created.
func NewLimiterSeries(name string, created time.Time) *LimiterSeries {
	s := &LimiterSeries{
		Near: LimiterNear.Series(name), Waiting: LimiterWaiting.Series(name), Wait: LimiterWaitDuration.Series(name),
		Available: LimiterAvailable.Series(name), Limit: LimiterLimit.Series(name), Period: LimiterPeriod.Series(name),
		Keys: LimiterKeys.Series(name), Evictions: LimiterEvictions.Series(name),
	}
	for i, outcome := range [LimiterOutcomes]string{"allowed", "refused", "waited", "cancelled", "shadowed"} {
		s.Requests[i] = LimiterRequests.Series(name, outcome)
		s.Tokens[i] = LimiterTokens.Series(name, outcome)
		s.Requests[i].Created, s.Tokens[i].Created = created, created
	}
	for _, counter := range [...]*stat.Series{s.Near, s.Wait, s.Evictions} {
		counter.Created = created
	}
	return s
}

// YieldQueueFull yields the number of refusals by a full queue if there were any. It reports
// whether yield wants more.
func (s *LimiterSeries) YieldQueueFull(n int64, yield func(*stat.Series, float64) bool) bool {
	return n == 0 || yield(s.madeLater(&s.queueFull, LimiterQueueFull), float64(n))
}

// NoRoom returns the series of requests that had no room.
func (s *LimiterSeries) NoRoom() *stat.Series { return s.madeLater(&s.noRoom, LimiterNoRoom) }

func (s *LimiterSeries) madeLater(p *atomic.Pointer[stat.Series], i *stat.Instrument) *stat.Series {
	if p.Load() == nil {
		series := i.Series(s.Near.Values[0])
		series.Created = s.Near.Created
		p.CompareAndSwap(nil, series)
	}
	return p.Load()
}

// RetrySeries are the series of a retry budget.
type RetrySeries struct{ First, Retries, Refused *stat.Series }

// NewRetrySeries returns the series for a name. The counters began at created.
func NewRetrySeries(name string, created time.Time) *RetrySeries {
	of := func(outcome string) *stat.Series {
		s := RetryCalls.Series(name, outcome)
		s.Created = created
		return s
	}
	return &RetrySeries{First: of("first"), Retries: of("retry"), Refused: of("refused")}
}
