package fleet

import (
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-go/weir/limiter"
)

// part is a set of limits that one server decides about, by one script.
type limitGroup struct {
	limits  []scopedLimit
	backend backend
	script  *scriptBackend // looks, and gives back in part
	outage  fallback
}

func newLimitGroup(ns namespace, c Config, terms []scopedLimit) *limitGroup {
	return &limitGroup{limits: terms, backend: newBackend(ns, terms), script: newScriptBackend(ns, terms), outage: newFallback(c, terms)}
}

// newParts divides terms into those that one server has the keys of, in the order of the config. A plain client has one server; of any
// other it is not known.
func groupLimits(ns namespace, c Config, terms []scopedLimit) (parts []*limitGroup) {
	if _, single := ns.link.client.(*redis.Client); single {
		return []*limitGroup{newLimitGroup(ns, c, terms)}
	}
	var scopes [][]scopedLimit
	for _, t := range terms {
		i := slices.IndexFunc(scopes, func(s []scopedLimit) bool { return s[0].scope == t.scope })
		if i < 0 {
			scopes = append(scopes, []scopedLimit{t})
		} else {
			scopes[i] = append(scopes[i], t)
		}
	}
	for _, scope := range scopes {
		parts = append(parts, newLimitGroup(ns, c, scope))
	}
	return parts
}

// bucketAge is for how much of an age tokens have come to a bucket that it had no room for, given what it answered when n were taken. Where
// it was not full before, none are lost until it would have been.
func bucketRefundAge(r bucketSpec, answer limiter.Result, n int, age time.Duration) time.Duration {
	cost := float64(r.micros) + float64(r.numerator)/float64(r.denominator)
	missing := answer.ResetAfter - time.Duration(float64(n)*cost*float64(time.Microsecond))
	return min(max(age-max(missing, 0), 0), age)
}

// ages is how long ago what was taken is to be taken to be, of each term.
func (p *limitGroup) refundAges(answers []limiter.Result, n int, age time.Duration) []time.Duration {
	ages := make([]time.Duration, len(p.limits))
	for i, t := range p.limits {
		ages[i] = age
		switch r := t.limitSpec.(type) {
		case bucketSpec:
			ages[i] = bucketRefundAge(r, answers[i], n, age)
		case cellSpec:
			ages[i] = bucketRefundAge(r.bucketSpec, answers[i], n, age)
		}
	}
	return ages
}
