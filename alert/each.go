package alert

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"time"
)

// maxMembers is the most members that a rule over [Each] watches.
const maxMembers = 1000

// Each makes one rule watch every member of a group, each by the value that the function
// returns for it:
//
//	alert.Each(hosts.All(), func(host *breaker.Breaker) alert.Value {
//		return alert.FailureRate(host, 5*time.Minute)
//	})
//
// The groups of breakers, of gates and of limiters have the method All, and so has a transport of
// package weirhttp.
//
// The members' alerts are told apart by the label "key", which is the key as fmt.Sprint writes it. A
// text that is not UTF-8 or longer than 1,024 bytes is cut, and a hash of the whole is appended. At
// most 1,000 members are watched. Members beyond that are left out, and so is a member whose key
// reads as that of another member; each evaluation counts that as an error.
//
// Each evaluation ranges over the sequence. A member is watched from the first evaluation that
// finds it. Its earlier calls are not counted. The same holds for a member that was absent and
// comes back, and for a key with another member than before, so the sequence has to yield equal
// members for as long as they are the same. A member that is absent has no fault, so its alert
// resolves. If the value of a member panics or is not valid, that member has no data and the
// evaluation counts as a panic of the rule; the other members are not affected.
func Each[K, S comparable](members iter.Seq2[K, S], value func(member S) Value) Value {
	v := Value{name: "value", low: math.Inf(-1), high: math.Inf(1), counts: true, countsBad: true, each: true}
	if members == nil || value == nil {
		v.errs = []error{errors.New("its members or its function are nil")}
	}
	v.start = func() probe {
		g := &group[K, S]{members: members, value: value}
		return g.sample
	}
	return v
}

// group takes the samples of all members.
type group[K, S comparable] struct {
	members iter.Seq2[K, S]
	value   func(S) Value
	watched map[K]*member[S]
}

type member[S comparable] struct {
	is    S
	label string // no two watched members have the same
	probe probe
}

func (g *group[K, S]) sample(t time.Time, yield func(reading)) outcome {
	found := g.roll()
	for _, m := range g.watched {
		var r reading
		if how := protect(func() { g.probe(m)(t, func(read reading) { r = read }) }); how.fault != noFault {
			r.sample, found = measurement{}, how
		}
		r.label = m.label
		yield(r)
	}
	return found
}

// probe returns the member's probe, which is made when it is first needed.
func (g *group[K, S]) probe(m *member[S]) probe {
	if m.probe == nil {
		m.probe = g.begin(m.is)
	}
	return m.probe
}

// roll brings the watched members up to date. Known members come before new ones, so that a group
// that is too large does not make alerts come and go.
func (g *group[K, S]) roll() (found outcome) {
	watched, fresh := map[K]*member[S]{}, map[K]S{}
	labels := map[string]bool{}
	for key, is := range g.members {
		if m, known := g.watched[key]; known && m.is == is {
			watched[key] = m
			labels[m.label] = true
		} else if len(fresh) <= maxMembers { // more of them than could be taken need no memory
			fresh[key] = is
		}
	}
	for key, is := range fresh {
		if len(watched) >= maxMembers {
			found.fault = tooMany
			break
		}
		label := labelText(keyText(key))
		if labels[label] {
			found.fault = sameLabel
			continue
		}
		labels[label] = true
		watched[key] = &member[S]{is: is, label: label}
	}
	g.watched = watched
	return found
}

// keyText returns the key as text.
func keyText[K comparable](key K) string {
	if text, ok := any(key).(string); ok {
		return text
	}
	return fmt.Sprint(key)
}

func (g *group[K, S]) begin(is S) probe {
	v := g.value(is)
	switch {
	case len(v.errs) > 0:
		panic(errors.Join(v.errs...))
	case v.start == nil || v.each:
		panic("alert: the value of a member is not set, or has members itself")
	}
	return v.start()
}
