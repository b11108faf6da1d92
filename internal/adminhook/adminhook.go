// Package adminhook lets package admin act on objects of other packages beyond their public API.
package adminhook

import (
	"context"
	"iter"
	"time"
)

// Object is an object as package admin sees it. A function that does not apply to the object is
// nil.
type Object struct {
	Kind, Name string
	Source     any // what the object was found in, or nil: set by package admin

	State    func() string // of a group, the override of all its members, or ""
	Override *Setting      // a string: what Force of a breaker sets, or "" for no override
	// PerMember says that Override is the one of the first member, and has to be set for each.
	PerMember bool
	Reset     func(ctx context.Context, why string) error
	Hold      func(d time.Duration)
	Limits    *Setting // a Limits
	Slots     *Slots
	Quota     *Setting // an int: the requests per window of a policy
	Throttle  *Setting // a Throttle
	Monitor   *Monitor
	Explain   func() string
	Tripped   func() bool
	Busiest   func(n int) any // a []limiter.BusyKey

	// Members yields the members of a group by the texts of their keys.
	Members iter.Seq2[string, Object]
	// Keyed returns the object of a key that Members does not yield, or false if the text does not
	// stand for a key. If Members is nil, the objects of all keys support the same verbs.
	Keyed func(key string) (o Object, ok bool)
}

// Limits are the rate and the burst of a limiter, or of each key of a group. Rate is a
// limiter.Rate. A Burst of 0 is the default.
type Limits struct {
	Rate  any
	Burst int
}

// Throttle is what an operator can change of a throttle.
type Throttle struct{ K, MaxRefusal float64 }

// Monitor is an alert monitor. Silence returns an error if the silence is invalid.
type Monitor struct {
	Silences   func() []Silence
	Silence    func(s Silence) error
	EndSilence func(name string) bool
	Rules      func() []string
	Notifiers  func() []string
	Test       func(ctx context.Context, notifier string) error
	Alerts     func() []Alert
}

// Silence is a silence of a monitor.
type Silence struct {
	Name       string
	Match      []string
	Start, End time.Time
}

// Alert is an alert that is pending or firing.
type Alert struct {
	Rule, Key, State, SilencedBy string
	Labels                       map[string]string
}

// Slots is a bound on calls in flight.
type Slots struct {
	InFlight func() int // in a group, of all keys together
	Now      func() int // the limit in effect; in a group, the lowest limit of any key
	// Limit, an int, is the limit that was configured, which is the highest one of an adaptive
	// bound.
	Limit *Setting
	Fixed bool // Limit cannot be changed
}

// The functions of packages breaker, limiter, inflight, weir, throttle and alert return one of
// their objects as an Object, or false for any other value. They are set when the packages are
// initialized.
var (
	OfBreaker  func(source any) (Object, bool)
	OfLimiter  func(source any) (Object, bool)
	OfInFlight func(source any) (Object, bool)
	OfGate     func(source any) (Object, bool)
	OfThrottle func(source any) (Object, bool)
	OfMonitor  func(source any) (Object, bool)
)

// OfPolicies is set by package weirhttp. It returns the policies of a weirhttp.Limit, or false for
// any other value.
var OfPolicies func(source any) ([]Object, bool)

// Of calls the functions that are set.
func Of(source any) (Object, bool) {
	for _, of := range []func(any) (Object, bool){OfGate, OfBreaker, OfLimiter, OfInFlight, OfThrottle, OfMonitor} {
		if of == nil {
			continue
		}
		if o, ok := of(source); ok {
			return o, true
		}
	}
	return Object{}, false
}
