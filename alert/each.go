package alert

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"math"
	"time"
)

// maxMembers is the maximum number of members that a rule over [Each] watches.
const maxMembers = 1000

// Each makes one rule watch every member of a group, each by the value that the function returns
// for it:
//
//	alert.Each(hosts.All(), func(host *breaker.Breaker) alert.Value {
//		return alert.FailureRate(host, 5*time.Minute)
//	})
//
// Groups of breakers, gates and limiters have the method All.
//
// The members' alerts differ in the label "key", which is the key as fmt.Sprint writes it. If that
// text is not UTF-8 or is longer than 1,024 bytes, it is cut, and a hash of the whole text is
// appended. At most 1,000 members are watched. Members beyond that are left out, and so are members
// whose key has the same text as another member's. An evaluation that leaves members out counts as
// an error.
//
// Each evaluation iterates over the sequence. A member is watched from the first evaluation that
// finds it, and its earlier calls are not counted. The same holds for a member that was absent and
// returns, and for a key whose member was replaced. The sequence must therefore yield the same M
// for a key each time. A member that is absent counts as healthy, so its alert resolves. If the
// alerts of more than 1,000 absent members fire, the oldest resolve before KeepFiring has passed.
// Such an evaluation counts as an error too.
// If the value of a member panics or is not valid, that member has no data, and the evaluation
// counts as a panic of the rule. Other members are not affected.
func Each[K, M comparable](members iter.Seq2[K, M], value func(member M) Value) Value {
	v := Value{name: "value", low: math.Inf(-1), high: math.Inf(1), counts: true, countsBad: true, each: true}
	if members == nil || value == nil {
		v.errs = []error{errors.New("the members or the function are nil")}
	}
	v.startGroup = func(before any) (sampler, any) {
		g := &group[K, M]{members: members, value: value}
		g.takeOverMembers(before)
		return g.sample, g
	}
	v.start = func() sampler {
		s, _ := v.startGroup(nil)
		return s
	}
	return v
}

// group samples the members of a rule over Each.
type group[K, M comparable] struct {
	members iter.Seq2[K, M]
	value   func(M) Value
	watched map[K]*watchedMember[M]
}

type watchedMember[M comparable] struct {
	member   M
	label    string    // unique among the watched members
	sampling *sampling // nil until the first sample
	before   *sampling // of the previous group
}

// takeOverMembers makes a new group watch the members of the previous group, which is not used any
// more.
func (g *group[K, M]) takeOverMembers(before any) {
	old, ok := before.(*group[K, M])
	if !ok {
		return
	}
	g.watched = make(map[K]*watchedMember[M], len(old.watched))
	for key, w := range old.watched {
		g.watched[key] = &watchedMember[M]{member: w.member, label: w.label, before: cmp.Or(w.sampling, w.before)}
	}
}

func (g *group[K, M]) sample(t time.Time, yield func(reading)) outcome {
	result := g.update()
	for _, w := range g.watched {
		var r reading
		if sampled := recovered(func() { g.sampler(w)(t, func(read reading) { r = read }) }); sampled.fault != noFault {
			r.measured, result = measurement{why: failedRule}, sampled
			result.key = w.label
		}
		r.key = w.label
		yield(r)
	}
	return result
}

// update brings the watched members up to date. Known members have precedence over new members.
// Otherwise a group that is too large could have different watched members, and so different
// alerts, at each evaluation.
func (g *group[K, M]) update() (result outcome) {
	watched, added := map[K]*watchedMember[M]{}, map[K]M{}
	labels := map[string]bool{}
	for key, member := range g.members {
		if w, known := g.watched[key]; known && w.member == member {
			watched[key] = w
			labels[w.label] = true
		} else if len(added) <= maxMembers {
			// one member above the maximum is enough to see that there are too many
			added[key] = member
		}
	}
	for key, member := range added {
		if len(watched) >= maxMembers {
			result.fault = tooMany
			break
		}
		label := labelText(fmt.Sprint(key))
		if labels[label] {
			result.fault = sameLabel
			continue
		}
		labels[label] = true
		watched[key] = &watchedMember[M]{member: member, label: label}
	}
	g.watched = watched
	return result
}

// sampler returns the sampler of w, which it makes at the first call. It panics if the value is not
// valid.
func (g *group[K, M]) sampler(w *watchedMember[M]) sampler {
	if w.sampling == nil {
		v := g.value(w.member)
		switch {
		case len(v.errs) > 0:
			panic(errors.Join(v.errs...))
		case v.start == nil || v.each:
			panic("alert: the value of a member is not set, or has members itself")
		}
		w.sampling, w.before = v.beginSampling(w.before), nil
	}
	return w.sampling.sample
}
