package limiter

import (
	"errors"
	"math"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/stat"
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

// named has the methods for users of a limiter that may have a name. It is embedded as a value, so
// that go doc shows the receivers as they are.
type named struct{ *statistics }

// statistics is the Requests of a limiter with a name. A limiter without a name has a nil
// *statistics, whose methods do nothing.
type statistics struct {
	count  Requests
	shadow atomic.Bool
	// Remaining is either 0 or Limit, so nothing counts as near
	allOrNothing bool
	// the state of the limiter and its period; takes nothing
	current func() (Result, time.Duration)
}

// newStatistics returns the statistics of a limiter, or nil if the name is empty.
func newStatistics(name string, shadow bool, current func() (Result, time.Duration)) *statistics {
	if name == "" {
		return nil
	}
	s := &statistics{current: current}
	s.count.name, s.count.created = name, time.Now()
	s.shadow.Store(shadow)
	return s
}

// Name returns the name of the limiter, or "" if it has none.
func (n *named) Name() string {
	if n.statistics == nil {
		return ""
	}
	return n.count.name
}

// Stats returns the statistics, which are zero if the limiter has no name.
func (n *named) Stats() Stats {
	if n.statistics == nil {
		return Stats{}
	}
	return n.count.Stats()
}

// Histograms yields the waiting times of the requests that were allowed after a wait. It yields
// nothing until there is such a request.
func (n *named) Histograms(yield func(*stat.Series, stat.Histogram) bool) {
	if n.statistics != nil {
		n.count.Histograms(yield)
	}
}

// Observe yields the metrics of the limiter (see [stat.Source]), or nothing if it has no name.
func (n *named) Observe(yield func(*stat.Series, float64) bool) {
	if n.statistics == nil || !n.observeCounts(yield) {
		return
	}
	r, period := n.current()
	series := n.count.series()
	if r.Limit == math.MaxInt || !yield(series.Available, float64(r.Remaining)) || !yield(series.Limit, float64(r.Limit)) {
		return
	}
	if period > 0 {
		yield(series.Period, period.Seconds())
	}
}

// observeCounts yields the counts and reports whether yield wants more.
func (s *statistics) observeCounts(yield func(*stat.Series, float64) bool) bool {
	return s.count.observe(observed{tokens: true, near: true, shadow: s.isShadow()}, yield)
}

// isShadow reports whether the limiter is in shadow mode.
func (s *statistics) isShadow() bool { return s != nil && s.shadow.Load() }

// record counts a request for n tokens that was answered with r, and returns the answer for the
// caller, which in shadow mode is always OK.
func (s *statistics) record(r Result, n int) Result {
	switch {
	case s == nil || n == 0:
	case !r.OK && s.isShadow():
		s.count.counts[shadowed].add(n)
		r.OK = true
	case s.allOrNothing && r.OK:
		s.count.counts[allowed].add(n)
	default:
		s.count.Record(r, n)
	}
	return r
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
		began = s.count.beginWait()
	}
	return began
}

// endWait counts the end of a wait for n tokens, and returns err with the name of the limiter.
func (s *statistics) endWait(began time.Time, n int, err error) error {
	if s != nil {
		s.count.endWait(began, n, err)
	}
	return s.withName(err)
}

// withName puts the name of the limiter into a *LimitedError.
func (s *statistics) withName(err error) error {
	if limited, ok := errors.AsType[*LimitedError](err); ok && s != nil {
		limited.Name = s.count.name
	}
	return err
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
