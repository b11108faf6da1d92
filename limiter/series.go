package limiter

import (
	"math"
	"sync/atomic"

	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/stat"
)

// The outcomes of a request.
const (
	allowed = iota
	refused
	waited
	cancelled
	shadowed
	outcomes
)

var outcomeNames = [outcomes]string{"allowed", "refused", "waited", "cancelled", "shadowed"}

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
		tokens = math.MaxInt64 // add is about to store it
	}
	return tokens
}

// limiterSeries is the series of a limiter with a name.
type limiterSeries struct {
	requests, tokens [outcomes]*stat.Series
	near, evictions  *stat.Series
	waiting, keys    *stat.Series
	available, limit *stat.Series
	period, wait     *stat.Series
}

func newLimiterSeries(name string) limiterSeries {
	s := limiterSeries{
		near: instrument.LimiterNear.Series(name), evictions: instrument.LimiterEvictions.Series(name),
		waiting: instrument.LimiterWaiting.Series(name), keys: instrument.LimiterKeys.Series(name),
		available: instrument.LimiterAvailable.Series(name), limit: instrument.LimiterLimit.Series(name),
		period: instrument.LimiterPeriod.Series(name), wait: instrument.LimiterWaitDuration.Series(name),
	}
	for i, outcome := range outcomeNames {
		s.requests[i] = instrument.LimiterRequests.Series(name, outcome)
		s.tokens[i] = instrument.LimiterPermits.Series(name, outcome)
	}
	return s
}
