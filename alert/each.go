package alert

import (
	"errors"
	"iter"
	"math"
	"time"
)

// maxMembers is the most members that a rule over [Each] watches.
const maxMembers = 1000

// Each makes one rule watch every member of a group, each by the value that the
// function makes for it. The members' alerts are told apart by the label "key", in
// which bytes that are not UTF-8 are replaced by U+FFFD. The keys are unique. At most 1,000
// members are watched: those that come when it is full are left out, and counted as an error
// of each evaluation.
//
//	alert.Each(hosts.All(), func(host *breaker.Breaker) alert.Value {
//		return alert.FailureRate(host, 5*time.Minute)
//	})
//
// The sequence is gone through at every evaluation. A member is watched from the first
// evaluation on that finds it: what it counted before is history, also for a member that
// was absent and comes back, and for a key with another member than before. A member that
// is absent has nothing wrong with it, so that its alert resolves. A member whose value
// panics, or is not valid, has no data, and counts as a panic of the rule; the others go on.
func Each[S comparable](members iter.Seq2[string, S], value func(member S) Value) Value {
	v := Value{name: "value", low: math.Inf(-1), high: math.Inf(1), counts: true, countsBad: true, each: true}
	if members == nil || value == nil {
		v.errs = []error{errors.New("its members or its function are nil")}
	}
	v.start = func() probe {
		g := &group[S]{members: members, value: value}
		return g.sample
	}
	return v
}

// group takes the samples of all members.
type group[S comparable] struct {
	members iter.Seq2[string, S]
	value   func(S) Value
	probes  map[string]member[S]
}

type member[S comparable] struct {
	is    S
	probe probe
}

func (g *group[S]) sample(t time.Time, yield func(reading)) outcome {
	found := g.roll()
	for key, m := range g.probes {
		var r reading
		if how := protect(func() { g.probe(&m)(t, func(read reading) { r = read }) }); how.fault != noFault {
			r.sample, found = Sample{}, how
		}
		r.key, g.probes[key] = key, m
		yield(r)
	}
	return found
}

// probe returns the member's, which is made the first time that it is needed.
func (g *group[S]) probe(m *member[S]) probe {
	if m.probe == nil {
		m.probe = g.begin(m.is)
	}
	return m.probe
}

// roll brings the probes up to date. Members that are known stay ahead of new ones,
// so that a group that is too large does not make alerts come and go.
func (g *group[S]) roll() (found outcome) {
	probes, fresh := map[string]member[S]{}, map[string]S{}
	for key, is := range g.members {
		if m, known := g.probes[key]; known && m.is == is {
			probes[key] = m
		} else if len(fresh) <= maxMembers { // more of them than could be taken need no memory
			fresh[key] = is
		}
	}
	for key, is := range fresh {
		if len(probes) >= maxMembers {
			found.fault = tooMany
			break
		}
		probes[key] = member[S]{is: is}
	}
	g.probes = probes
	return found
}

func (g *group[S]) begin(is S) probe {
	v := g.value(is)
	switch {
	case len(v.errs) > 0:
		panic(errors.Join(v.errs...))
	case v.start == nil || v.each:
		panic("alert: the value of a member is not set, or has members itself")
	}
	return v.start()
}
