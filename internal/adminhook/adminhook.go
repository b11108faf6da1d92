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

	State    func() string           // of a group, the override of all its members, or ""
	Override func() string           // what Force has set and Release would end, or ""
	Force    func(state, why string) // state is an override
	Release  func(why string)
	Reset    func(ctx context.Context, why string) error
	Hold     func(d time.Duration)
	Limits   *Limits
	Slots    *Slots
	Quota    *Quota
	Throttle *Throttle
	Monitor  *Monitor
	Explain  func() string
	Tripped  func() bool
	Busiest  func(n int) any // a []limiter.BusyKey

	// Members yields the members of a group by the texts of their keys.
	Members iter.Seq2[string, Object]
	// Keyed returns the object of a key that Members does not yield, or false if the text does not
	// stand for a key. If Members is nil, the objects of all keys support the same verbs.
	Keyed func(key string) (o Object, ok bool)
}

// Limits are the rate and the burst of a limiter, or of each key of a group. The rate is a
// limiter.Rate. The values given to Set are valid. If Check is not nil, it has accepted them too.
type Limits struct {
	Get   func() (rate any, burst int)
	Set   func(rate any, burst int)
	Check func(rate any, burst int) error
}

// Quota is a number of requests per window. The values given to Set are valid by Check.
type Quota struct {
	Get   func() int
	Set   func(n int)
	Check func(n int) error
}

// Throttle is what an operator can change of a throttle. The values given to Set are valid by
// Check.
type Throttle struct {
	Get   func() (k, maxRefusal float64)
	Set   func(k, maxRefusal float64)
	Check func(k, maxRefusal float64) error
}

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
	// the limit that was configured, which is the highest one of an adaptive bound
	Get func() int
	Set func(n int) error
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
