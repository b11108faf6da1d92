package limiter

import (
	"math"
	"sync/atomic"

	"github.com/weir-go/weir/internal/instrument"
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
	if t.permits.Add(int64(max(n, 0))) < 0 {
		t.permits.Store(math.MaxInt64) // requests for very many: it stays there instead of wrapping around
	}
}

// sum is how many permits the requests were for.
func (t *tally) sum() int64 {
	permits := t.permits.Load()
	if permits < 0 {
		permits = math.MaxInt64 // another goroutine is just about to put it there
	}
	return permits
}

// namedSeries are the series of a limiter with a name.
type namedSeries struct {
	requests, permits [outcomes]*stat.Series
	near, evictions   *stat.Series
	waiting, keys     *stat.Series
	available, limit  *stat.Series
	period, wait      *stat.Series
}

func (s *namedSeries) build(name string) {
	for i, outcome := range outcomeNames {
		s.requests[i] = instrument.LimiterRequests.Series(name, outcome)
		s.permits[i] = instrument.LimiterPermits.Series(name, outcome)
	}
	s.near = instrument.LimiterNear.Series(name)
	s.evictions = instrument.LimiterEvictions.Series(name)
	s.wait = instrument.LimiterWaitDuration.Series(name)
	s.waiting = instrument.LimiterWaiting.Series(name)
	s.keys = instrument.LimiterKeys.Series(name)
	s.available = instrument.LimiterAvailable.Series(name)
	s.limit = instrument.LimiterLimit.Series(name)
	s.period = instrument.LimiterPeriod.Series(name)
}
