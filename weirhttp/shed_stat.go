package weirhttp

import (
	"sync/atomic"

	"github.com/weir-go/weir/stat"
)

// What becomes of a request.
const (
	allowed = iota
	refused
	waited
	cancelled
	outcomes
)

var outcomeNames = [outcomes]string{"allowed", "refused", "waited", "cancelled"}

// counts are how many requests had which outcome.
type counts struct {
	n        [outcomes]atomic.Int64
	requests [outcomes]*stat.Series
	permits  [outcomes]*stat.Series
}

func newCounts(name string) *counts {
	c := &counts{}
	for i, outcome := range outcomeNames {
		c.requests[i] = stat.LimiterRequests.Series(name, outcome)
		c.permits[i] = stat.LimiterPermits.Series(name, outcome)
	}
	return c
}

func (c *counts) add(outcome int) { c.n[outcome].Add(1) }

func (c *counts) observe(yield func(*stat.Series, float64)) {
	for i := range c.n {
		n := float64(c.n[i].Load())
		yield(c.requests[i], n)
		yield(c.permits[i], n) // a request takes one permit
	}
}
