package fleet

import (
	"context"
	"math"
	"time"

	"github.com/weir-go/weir/limiter"
)

// Limit is one limit of a [Limiter]: a [TokenBucket], [FixedWindow], [SlidingWindow] or
// [SlidingLog], or one of these for several keys together: [Shared]. Packages rediscell and redisson have one more each.
type Limit interface {
	// compile returns the limit as the scripts know it, with the defaults filled in, or an error
	// that names all faults.
	compile() (term, error)
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

// term is a rule, and the keys that it is about.
type term struct {
	rule
	by     func(key string) string // what is counted together; nil for each key by itself
	scope  int                     // the same for terms that count the same keys together; 0 for each by itself
	suffix string                  // of its keys in Redis
	place  int                     // in Config.Limits
}

// tag is what stands in Redis for that which the term counts for a key.
func (t term) tag(k target) string {
	if t.by == nil {
		return k.tag
	}
	return tag(t.by(k.key))
}

// target is the key that a request is about.
type target struct {
	key, tag string
	waiter   *place // of the caller, where it waits in line
}

func targetOf(key string) target { return target{key: key, tag: tag(key)} }

// most is how many permits can be taken at once, of all terms.
func most(terms []term) int {
	least := math.MaxInt
	for _, t := range terms {
		least = min(least, t.most())
	}
	return least
}

// newStore returns the store for terms: that of one kind alone, where it has one, and otherwise the
// script that knows all kinds.
func newStore(ns namespace, terms []term) store {
	if len(terms) == 1 {
		switch r := terms[0].rule.(type) {
		case cellRule:
			if terms[0].suffix == "" && terms[0].by == nil {
				return &cellStore{namespace: ns, cell: newCell(r.cellLimit)}
			}
		case bucketRule:
			if r.part == 0 {
				return newQuickBucket(ns, terms[0], r)
			}
		}
	}
	return newScripted(ns, terms)
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
		return &StoreError{link: ns.link.name, Fault: faultTrouble}
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
func decided(ctx context.Context, s store, k target, n int, at time.Time) (limiter.Result, error) {
	results, err := s.each(ctx, k, n, at)
	if err != nil {
		return limiter.Result{}, err
	}
	return join(results), nil
}
