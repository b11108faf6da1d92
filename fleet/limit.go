package fleet

import (
	"context"
	"math"
	"time"

	"github.com/weir-go/weir/limiter"
)

// Limit is one limit of a [Limiter]: a [TokenBucket], [FixedWindow], [SlidingWindow], [SlidingLog]
// or [Cell].
type Limit interface {
	// Validate returns nil for a limit that makes sense, and otherwise an error that names all
	// faults.
	Validate() error
	// rule is the limit, ready for the scripts, with the defaults filled in.
	rule() rule
}

// rule is a limit as the scripts know it.
type rule interface {
	// kind is its name there.
	kind() string
	// keys are those of a user, given what all of them begin with. What was taken is in the first.
	keys(base string) []string
	// numbers are what the script needs to know.
	numbers() []any
	// most is how many permits can be taken at once.
	most() int
	// pace is at which rate permits come, in the long run.
	pace() (events float64, per time.Duration)
}

// most is how many permits can be taken at once, of all rules.
func most(rules []rule) int {
	least := math.MaxInt
	for _, r := range rules {
		least = min(least, r.most())
	}
	return least
}

// newStore returns the store for rules: that of one kind alone, where it has one, and otherwise the
// script that knows all kinds.
func newStore(ns namespace, rules []rule) store {
	if len(rules) == 1 {
		switch r := rules[0].(type) {
		case cellRule:
			return &cellStore{namespace: ns, cell: newCell(r.Cell)}
		case bucketRule:
			if r.part == 0 {
				return newQuickBucket(ns, r)
			}
		}
	}
	return newScripted(ns, rules)
}

// namespace is where a limiter has its keys.
type namespace struct {
	link *Link
	name string
}

// base is what all Redis keys of a user begin with.
func (ns namespace) base(tag string) string { return ns.link.prefix + ns.name + ":{" + tag + "}" }

// whole checks that an answer has as many numbers as it should: a proxy or a module may say
// anything.
func (ns namespace) whole(reply []int64, err error, numbers int) error {
	if err == nil && len(reply) != numbers {
		return &StoreError{Name: ns.link.name, Fault: Trouble}
	}
	return err
}

// join is the answer of all limits together.
func join(results []limiter.Result) limiter.Result {
	all := results[0]
	for _, r := range results[1:] {
		all.OK = all.OK && r.OK
		all.Limit = min(all.Limit, r.Limit)
		all.Remaining = min(all.Remaining, r.Remaining)
		all.RetryAfter = max(all.RetryAfter, r.RetryAfter)
		all.ResetAfter = max(all.ResetAfter, r.ResetAfter)
	}
	return all
}

// alone is the answer of a limiter's only limit, as a list.
func alone(r limiter.Result, err error) ([]limiter.Result, error) {
	if err != nil {
		return nil, err
	}
	return []limiter.Result{r}, nil
}

// decided joins the answers of each limit.
func decided(ctx context.Context, s store, tag string, n int, at time.Time) (limiter.Result, error) {
	results, err := s.each(ctx, tag, n, at)
	if err != nil {
		return limiter.Result{}, err
	}
	return join(results), nil
}
