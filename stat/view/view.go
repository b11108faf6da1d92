// Package view has what operators see of a guard beside its metrics, and what they can change:
// packages admin and exporters/dashboard use it. The guards of this module have views, and a guard
// of your own can have one. Then admin lists it and acts on it, and the live page shows its
// incidents:
//
//	type killSwitch struct{ … } // a stat.Source, as exporters need
//
//	func (k *killSwitch) Views(yield func(view.View) bool) { yield(k) }
//	func (k *killSwitch) Kind() string                     { return "switch" }
//	func (k *killSwitch) Name() string                     { return k.name }
//	func (k *killSwitch) Hold(d time.Duration)             { … } // view.Holder
//
// A View has the interfaces of this package that apply to it; only View itself is required. Their
// methods must be safe for concurrent use.
package view

import (
	"context"
	"iter"
	"time"
)

// Viewer is a [github.com/weir-go/weir/stat.Source] that has views.
type Viewer interface {
	// Views yields the view of the guard. A source that consists of several guards, such as the
	// policies of a weirhttp.Limit, yields one for each.
	Views(yield func(View) bool)
}

// View is a guard as operators see it.
type View interface {
	// Kind is what the guard is, such as "breaker".
	Kind() string
	// Name is its name. No other guard of the same kind has it. A guard without a name is not
	// shown.
	Name() string
}

// Stateful is a guard with a state.
type Stateful interface {
	// State returns the state, as the metric weir.breaker.state names it. For a group it returns
	// the override of all members, or "".
	State() string
	// Tripped reports whether the guard refuses calls because calls have failed.
	Tripped() bool
	// Explain returns in words why the guard refuses calls, or "" if it refuses none.
	Explain() string
}

// Bounded is a guard with a bound on the calls in flight.
type Bounded interface {
	// Bound returns the calls in flight, the bound now, and the bound as it was configured. The
	// second is lower than the third if the bound adapts.
	Bound() (calls, now, configured int)
}

// Setting is something that operators can change.
type Setting struct {
	// Name is "state" for an override, or "rate", "burst", "max_concurrent", "limit", "k" or
	// "max_refusal".
	Name string
	// Value is the value as text. A rate is in the form of limiter.ParseRate, and a state is empty
	// if there is no override.
	Value string
	// Version differs between any two times at which the setting was set, by whomever.
	Version uint64
}

// Tunable is a guard with settings. A change may end by itself: then Restore undoes it, unless the
// settings were set again meanwhile, even to the same values.
type Tunable interface {
	// Settings returns the settings that can be set now.
	Settings() []Setting
	// Set sets the named settings to the values, in one step, and returns them with their versions.
	// The versions of its parameters are not used. why names the operator and the reason. If a
	// value is invalid, a name is unknown or given twice, or there is no setting, Set returns an
	// error and changes nothing.
	Set(why string, s ...Setting) ([]Setting, error)
	// Restore sets the settings to their earlier values and versions if they still have the
	// versions that Set has returned, and reports whether it did. It sets no others. Settings that
	// change in one step have one version, so it changes for both.
	Restore(why string, set, earlier []Setting) bool
}

// Resetter is a guard that can begin anew.
type Resetter interface {
	// Reset makes the guard begin anew, and for a group all its members. why names the operator and
	// the reason.
	Reset(ctx context.Context, why string) error
}

// Holder is a guard that can refuse all calls for a while.
type Holder interface {
	// Hold refuses all calls for d. A shorter hold does not shorten a longer one.
	Hold(d time.Duration)
}

// Group is a guard per key.
type Group interface {
	// Members yields the members by the texts of their keys, in no particular order.
	Members() iter.Seq2[string, View]
	// Shown yields the members with metric series of their own.
	Shown() iter.Seq2[string, View]
}

// Keyed is a guard that is asked with a key. It may be a [Group] too, if it can yield its members.
type Keyed interface {
	// Key returns the guard of a key, also of one that is not in use, or false if the text does not
	// stand for a key.
	Key(text string) (View, bool)
}

// Guard is a guard of which the live page shows more than metrics.
type Guard interface{ Status() Status }

// Status is what a guard knows of itself at one moment. The slices must not be changed. Fields that
// do not apply are zero.
type Status struct {
	// Incidents are the last incidents, the oldest first. If the last one has not ended, the guard
	// refuses calls because of it.
	Incidents []Incident
	// Reason is why the guard refuses calls since its last opening, in words, and Margin what would
	// have prevented that opening.
	Reason, Margin string
	// Failures are the last failures before the opening, the newest first, or only the last one if
	// the guard refuses no calls.
	Failures []Failure
	// RetryAt is when an open guard lets a call through.
	RetryAt time.Time
	// Probes is how many probes of a half-open guard have a result.
	Probes int
	// OneOf is that a recovering guard lets one of so many calls through.
	OneOf int
	// Held is for how long the service has asked not to be called.
	Held time.Duration
	// NextToken is the time until a limit has a free token.
	NextToken time.Duration
	// SlowRate is the share of slow calls, SlowLimit the share at which the guard opens, and
	// SlowCall how long a call may take without being slow.
	SlowRate, SlowLimit float64
	SlowCall            time.Duration
	// P50 and P99 are quantiles of the durations of calls.
	P50, P99 time.Duration
	// Config has the config in effect, in words: Settings returns it, with versions of 0. Nil if
	// there is none. Settings is called only for those who look at the guard.
	Config interface{ Settings() []Setting }
}

// Incident is the time from an opening of a guard until calls pass as usual again.
type Incident struct {
	Began    time.Time
	Ended    time.Time // zero while it lasts
	Openings int
	Cause    string // of the first opening, in words
}

// Lasts returns the incident that has not ended, or nil.
func (s *Status) Lasts() *Incident {
	if n := len(s.Incidents); n > 0 && s.Incidents[n-1].Ended.IsZero() {
		return &s.Incidents[n-1]
	}
	return nil
}

// Failure is a failed call.
type Failure struct {
	Time     time.Time
	Duration time.Duration // 0 if it is not known
	Kind     string        // of the error, such as "timeout"
	Message  string        // of the error
	Note     string        // of the user
}
