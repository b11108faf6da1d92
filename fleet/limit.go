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
	compile() (scopedLimit, error)
}

// rule is a limit as the scripts know it.
type limitSpec interface {
	// kind is its name there.
	scriptName() string
	// keys are those of a user, given what all of them begin with. What was taken is in the first.
	redisKeys(base string) []string
	// numbers are what the script needs to know.
	scriptArgs() []any
	// most is how many permits can be taken at once.
	maxTake() int
	// pace is at which rate permits come, in the long run.
	longRunRate() (events float64, per time.Duration)
}

// term is a rule, and the keys that it is about.
type scopedLimit struct {
	limitSpec
	sharedBy  func(key string) string // what is counted together; nil for each key by itself
	scope     int                     // the same for terms that count the same keys together; 0 for each by itself
	keySuffix string                  // of its keys in Redis
	index     int                     // in Config.Limits
}

// tag is what stands in Redis for that which the term counts for a key.
func (t scopedLimit) tagFor(k requestKey) string {
	if t.sharedBy == nil {
		return k.tag
	}
	return tag(t.sharedBy(k.key))
}

// target is the key that a request is about.
type requestKey struct {
	key, tag string
	waiter   *waiter // of the caller, where it waits in line
}

func newRequestKey(key string) requestKey { return requestKey{key: key, tag: tag(key)} }

// most is how many permits can be taken at once, of all terms.
func maxTakeOfAll(terms []scopedLimit) int {
	least := math.MaxInt
	for _, t := range terms {
		least = min(least, t.maxTake())
	}
	return least
}

// newStore returns the store for terms: that of one kind alone, where it has one, and otherwise the
// script that knows all kinds.
func newBackend(ns namespace, terms []scopedLimit) backend {
	if len(terms) == 1 {
		switch r := terms[0].limitSpec.(type) {
		case cellSpec:
			if terms[0].keySuffix == "" && terms[0].sharedBy == nil {
				return &cellBackend{namespace: ns, cellMath: newCellMath(r.cellLimit)}
			}
		case bucketSpec:
			if r.numerator == 0 {
				return newQuickBucket(ns, terms[0], r)
			}
		}
	}
	return newScriptBackend(ns, terms)
}

// namespace is where a limiter has its keys.
type namespace struct {
	link *Link
	name string
}

// base is what all Redis keys of a user begin with.
func (ns namespace) keyBase(tag string) string { return ns.link.prefix + ns.name + ":{" + tag + "}" }

// whole checks that an answer has as many numbers as it should: a proxy or a module may say
// anything.
func (ns namespace) checkLength(reply []int64, err error, numbers int) error {
	if err == nil && len(reply) != numbers {
		return &StoreError{link: ns.link.name, Fault: faultOther}
	}
	return err
}

// join is the answer of all limits together.
func combine(results []limiter.Result) limiter.Result {
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
func asList(r limiter.Result, err error) ([]limiter.Result, error) {
	if err != nil {
		return nil, err
	}
	return []limiter.Result{r}, nil
}

// decided joins the answers of each limit.
func takeCombined(ctx context.Context, s backend, k requestKey, n int, at time.Time) (limiter.Result, error) {
	results, err := s.takeEach(ctx, k, n, at)
	if err != nil {
		return limiter.Result{}, err
	}
	return combine(results), nil
}
