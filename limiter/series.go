package limiter

import (
	"math"
	"sync/atomic"

	"github.com/weir-go/weir/internal/instrument"
)

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
