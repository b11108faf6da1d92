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
	n      [outcomes]atomic.Int64
	series [outcomes]*stat.Series
}

func newCounts(name string) *counts {
	c := &counts{}
	for i, outcome := range outcomeNames {
		c.series[i] = stat.LimiterRequests.Series(name, outcome)
	}
	return c
}

func (c *counts) add(outcome int) { c.n[outcome].Add(1) }

func (c *counts) observe(yield func(*stat.Series, float64)) {
	for i, series := range c.series {
		yield(series, float64(c.n[i].Load()))
	}
}
