package limiter

import (
	"math"
	"sync/atomic"

	"github.com/weir-go/weir/stat"
)

// What becomes of a request.
const (
	allowed = iota
	refusedOnes
	waited
	cancelled
	shadowed
	outcomes
)

var outcomeNames = [outcomes]string{"allowed", "refused", "waited", "cancelled", "shadowed"}

// tally counts requests with one outcome.
type tally struct{ requests, permits atomic.Int64 }

func (t *tally) add(n int) {
	t.requests.Add(1)
	t.permits.Add(int64(max(n, 0)))
}

func (t *tally) load() Tally { return Tally{Requests: t.requests.Load(), Permits: t.permits.Load()} }

// namedSeries are the series of a Named.
type namedSeries struct {
	requests, permits                [outcomes]*stat.Series // without shadowed where nothing is
	near, waiting, available, atOnce *stat.Series
}

func (s *namedSeries) build(name string, shadow bool) {
	for i, outcome := range outcomeNames {
		if i == shadowed && !shadow {
			continue
		}
		s.requests[i] = stat.LimiterRequests.Series(name, outcome)
		s.permits[i] = stat.LimiterPermits.Series(name, outcome)
	}
	s.near = stat.LimiterNear.Series(name)
	s.waiting = stat.LimiterWaiting.Series(name)
	s.available = stat.LimiterAvailable.Series(name)
	s.atOnce = stat.LimiterLimit.Series(name)
}

// Observe yields the statistics: see [stat.Source]. It peeks at the limiter.
func (l *Named) Observe(yield func(*stat.Series, float64)) {
	for i := range l.counts {
		if s := l.series.requests[i]; s != nil {
			yield(s, float64(l.counts[i].requests.Load()))
			yield(l.series.permits[i], float64(l.counts[i].permits.Load()))
		}
	}
	yield(l.series.near, float64(l.nearby.Load()))
	yield(l.series.waiting, float64(l.waiting.Load()))
	if r := l.inner.Take(0); r.Limit < math.MaxInt {
		yield(l.series.available, float64(r.Remaining))
		yield(l.series.atOnce, float64(r.Limit))
	}
}
