package limiter

import (
	"errors"
	"math"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/internal/latency"
	"github.com/weir-go/weir/internal/sentinel"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/window"
)

// Stats counts the requests to a limiter since it was created. A request for 0 tokens is not
// counted.
type Stats struct {
	// Allowed is the number of requests allowed at once.
	Allowed int64
	// Waited is the number of requests allowed after a wait.
	Waited int64
	// Refused is the number of requests refused.
	Refused int64
	// Cancelled is the number of requests whose context was cancelled during the wait.
	Cancelled int64
	// Shadowed is the number of requests that shadow mode allowed although the limit was reached.
	Shadowed int64
	// Near is the number of tokens, not requests, taken when more than 80 % of the limit was in
	// use.
	Near int64
	// Waiting is the number of requests waiting now.
	Waiting int64
}

// nearShare is the share of the limit above which a token counts as near the limit.
const nearShare = 0.8

// statistics counts the requests to a limiter with a name. A limiter without a name has a nil
// *statistics, whose methods do nothing.
type statistics struct {
	name   string
	shadow atomic.Bool
	// Remaining is either 0 or Limit, so nothing counts as near
	allOrNothing bool
	// the state of the limiter and its period; takes nothing
	current func() (Result, time.Duration)
	counts  [outcomes]requestCount            // by outcome
	near    atomic.Int64                      // tokens
	full    atomic.Int64                      // requests for which the queue was full
	waiting atomic.Int64                      // requests
	waits   atomic.Pointer[latency.Histogram] // nil until a request has waited
	series  *instrument.LimiterSeries
}

// newStatistics returns the statistics of a limiter, or nil if the name is empty.
func newStatistics(name string, shadow bool, current func() (Result, time.Duration)) *statistics {
	if name == "" {
		return nil
	}
	s := &statistics{name: name, current: current, series: instrument.NewLimiterSeries(name, time.Now())}
	s.shadow.Store(shadow)
	return s
}

// Name returns the name of the limiter, or "" if it has none.
func (s *statistics) Name() string {
	if s == nil {
		return ""
	}
	return s.name
}

// Stats returns the statistics, which are zero if the limiter has no name.
func (s *statistics) Stats() Stats {
	if s == nil {
		return Stats{}
	}
	return Stats{
		Allowed: s.requests(allowed), Waited: s.requests(waited), Refused: s.requests(refused),
		Cancelled: s.requests(cancelled), Shadowed: s.requests(shadowed),
		Near: s.near.Load(), Waiting: s.waiting.Load(),
	}
}

func (s *statistics) requests(outcome int) int64 { return s.counts[outcome].requests.Load() }

// Waits returns the waiting times of the requests that were allowed after a wait.
func (s *statistics) Waits() window.Latency {
	if s == nil {
		return window.Latency{}
	}
	if waits := s.waits.Load(); waits != nil {
		return window.Latency(waits.Snapshot())
	}
	return window.Latency{}
}

// Histograms yields the waiting times of the requests that were allowed after a wait. It yields
// nothing until there is such a request.
func (s *statistics) Histograms(yield func(*stat.Series, stat.Histogram) bool) {
	if s != nil && s.waits.Load() != nil {
		waits := s.Waits()
		yield(s.series.Wait, waits.Histogram())
	}
}

// Observe yields the metrics of the limiter (see [stat.Source]), or nothing if it has no name.
func (s *statistics) Observe(yield func(*stat.Series, float64) bool) {
	if s == nil || !s.observeCounts(yield) {
		return
	}
	r, period := s.current()
	if r.Limit == math.MaxInt || !yield(s.series.Available, float64(r.Remaining)) || !yield(s.series.Limit, float64(r.Limit)) {
		return
	}
	if period > 0 {
		yield(s.series.Period, period.Seconds())
	}
}

// observeCounts yields the counts and reports whether yield wants more.
func (s *statistics) observeCounts(yield func(*stat.Series, float64) bool) bool {
	for i := range s.counts {
		if i == shadowed && !s.isShadow() && s.requests(i) == 0 {
			continue
		}
		if !yield(s.series.Requests[i], float64(s.requests(i))) || !yield(s.series.Tokens[i], float64(s.counts[i].tokenSum())) {
			return false
		}
	}
	if !s.series.YieldQueueFull(s.full.Load(), yield) {
		return false
	}
	return yield(s.series.Near, float64(s.near.Load())) && yield(s.series.Waiting, float64(s.waiting.Load()))
}

// isShadow reports whether the limiter is in shadow mode.
func (s *statistics) isShadow() bool { return s != nil && s.shadow.Load() }

// record counts a request for n tokens that was answered with r, and returns the answer for the
// caller, which in shadow mode is always OK.
func (s *statistics) record(r Result, n int) Result {
	switch {
	case s == nil || n == 0:
	case r.OK:
		s.counts[allowed].add(n)
		s.recordNearLimit(r, n)
	case s.isShadow():
		s.counts[shadowed].add(n)
		r.OK = true
	default:
		s.counts[refused].add(n)
	}
	return r
}

// recordNearLimit counts how many of the n tokens just taken are near the limit.
func (s *statistics) recordNearLimit(r Result, n int) {
	if r.Limit == math.MaxInt || s.allOrNothing {
		return
	}
	// float rounding must not move 0.8 of 10 below 8
	threshold := nearShare * float64(r.Limit) * (1 + 0x1p-50)
	if beyond := r.Limit - r.Remaining - int(math.Floor(threshold)); beyond > 0 {
		s.near.Add(int64(min(n, beyond)))
	}
}

// recordRefusal counts a refused request to a Joint if r, the answer of this limiter, is a refusal
// too.
func (s *statistics) recordRefusal(r Result, n int) {
	if !r.OK && !s.isShadow() {
		s.record(r, n)
	}
}

// beginWait counts a request that begins to wait, and returns the time.
func (s *statistics) beginWait() (began time.Time) {
	if s != nil {
		s.waiting.Add(1)
		began = time.Now()
	}
	return began
}

// endWait counts the end of a wait for n tokens, and returns err with the name of the limiter.
func (s *statistics) endWait(began time.Time, n int, err error) error {
	if s == nil {
		return err
	}
	s.waiting.Add(-1)
	switch {
	case n == 0:
	case err == nil:
		s.counts[waited].add(n)
		s.recordWait(time.Since(began))
	case errors.Is(err, sentinel.ErrRefused):
		s.counts[refused].add(n)
		if errors.Is(err, ErrQueueFull) {
			s.full.Add(1)
		}
	default:
		s.counts[cancelled].add(n)
	}
	return s.withName(err)
}

func (s *statistics) recordWait(took time.Duration) {
	waits := s.waits.Load()
	if waits == nil { // 2 kB, which most limiters never need
		s.waits.CompareAndSwap(nil, new(latency.Histogram))
		waits = s.waits.Load()
	}
	waits.Record(took)
}

// withName puts the name of the limiter into a *LimitedError.
func (s *statistics) withName(err error) error {
	if limited, ok := errors.AsType[*LimitedError](err); ok && s != nil {
		limited.Name = s.name
	}
	return err
}

// The outcomes of a request.
const (
	allowed   = instrument.Allowed
	refused   = instrument.Refused
	waited    = instrument.Waited
	cancelled = instrument.Cancelled
	shadowed  = instrument.Shadowed
	outcomes  = instrument.LimiterOutcomes
)

// requestCount counts the requests with one outcome, and the tokens they asked for.
type requestCount struct{ requests, tokens atomic.Int64 }

func (c *requestCount) add(n int) {
	c.requests.Add(1)
	if c.tokens.Add(int64(max(n, 0))) < 0 {
		c.tokens.Store(math.MaxInt64) // the sum stays at the maximum instead of wrapping around
	}
}

func (c *requestCount) tokenSum() int64 {
	tokens := c.tokens.Load()
	if tokens < 0 {
		tokens = math.MaxInt64 // add will store it
	}
	return tokens
}

// BusyKey is a key whose requests were refused. The method Busiest of a [Group], a weir.Group, a
// weirhttp.Limit or a fleet.Limiter returns it. Its counts are those of the last 5 to 10 minutes.
//
// The counts are bounds, because a limiter counts only as many keys as fit into 8 kB. If it has
// refused n requests in that time, the bounds of a key differ by at most n/32, and usually by
// n/128. Every key with more refusals than n/32 is counted.
type BusyKey struct {
	// Limiter is the name of the limiter or policy that has refused the key.
	Limiter string
	// Key is "#" and 12 hexadecimal digits of a hash of the key, or the first 64 bytes of the key
	// if ShowKeys is set. All limiters of a process have the same hash for equal keys of the same
	// type. The hash differs in each process, so that a key cannot be found by hashing all possible
	// ones.
	Key string
	// AtLeast and AtMost are bounds of how many requests of the key were refused, or would have
	// been refused without shadow mode.
	AtLeast, AtMost int64
}

// Busiest returns up to n of the keys that the group has refused most often, with the most refused
// key first. It returns none if the group has no name. Counting costs nothing for admitted
// requests.
func (g *Group[K]) Busiest(n int) []BusyKey {
	var keys []BusyKey
	for _, k := range g.busiest.Busiest(g.Name(), n) {
		keys = append(keys, BusyKey(k))
	}
	return keys
}
