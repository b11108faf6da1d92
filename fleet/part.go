package fleet

import (
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-go/weir/limiter"
)

// part is a set of limits that one server decides about, by one script.
type part struct {
	terms  []term
	store  store
	script *scripted // looks, and gives back in part
	outage fallback
}

func newPart(ns namespace, c Config, terms []term) *part {
	return &part{terms: terms, store: newStore(ns, terms), script: newScripted(ns, terms), outage: newFallback(c, terms)}
}

// newParts divides terms into those that one server has the keys of, in the order of the config. A plain client has one server; of any
// other it is not known.
func newParts(ns namespace, c Config, terms []term) (parts []*part) {
	if _, single := ns.link.client.(*redis.Client); single {
		return []*part{newPart(ns, c, terms)}
	}
	var scopes [][]term
	for _, t := range terms {
		i := slices.IndexFunc(scopes, func(s []term) bool { return s[0].scope == t.scope })
		if i < 0 {
			scopes = append(scopes, []term{t})
		} else {
			scopes[i] = append(scopes[i], t)
		}
	}
	for _, scope := range scopes {
		parts = append(parts, newPart(ns, c, scope))
	}
	return parts
}

// bucketAge is for how much of an age tokens have come to a bucket that it had no room for, given what it answered when n were taken. Where
// it was not full before, none are lost until it would have been.
func bucketAge(r bucketRule, answer limiter.Result, n int, age time.Duration) time.Duration {
	cost := float64(r.whole) + float64(r.part)/float64(r.parts)
	missing := answer.ResetAfter - time.Duration(float64(n)*cost*float64(time.Microsecond))
	return min(max(age-max(missing, 0), 0), age)
}

// ages is how long ago what was taken is to be taken to be, of each term.
func (p *part) ages(answers []limiter.Result, n int, age time.Duration) []time.Duration {
	ages := make([]time.Duration, len(p.terms))
	for i, t := range p.terms {
		ages[i] = age
		switch r := t.rule.(type) {
		case bucketRule:
			ages[i] = bucketAge(r, answers[i], n, age)
		case cellRule:
			ages[i] = bucketAge(r.bucketRule, answers[i], n, age)
		}
	}
	return ages
}
