// Package report carries what the live page shows of breakers, gates, limiters and alert rules
// beside their metrics: causes, times, keys and configurations. The packages of the objects set the
// functions when they are initialized. A reading takes no lock that a call takes, except that of a
// breaker that is recovering.
package report

import "time"

// Breaker is the state of a breaker, or of a member of a group, at one moment. The slices must not
// be changed.
type Breaker struct {
	Name, Key string
	Incident  // the current incident; Openings is 0 if the breaker is not tripped
	Reason    string
	Margin    string
	// Failures are the last failures before the opening, the newest first. For a closed breaker
	// with failures in its window, Failures is only the last failure.
	Failures []Failure
	Until    time.Time     // Open: when the cooldown ends; zero for never
	OneOf    int           // Recovering: one of this many calls passes; otherwise 0
	Probes   int           // HalfOpen: the probes that have a result
	Held     time.Duration // of a gate: how long the service has asked not to be called

	// the share of slow calls, and that at which the breaker opens; 0 for no limit
	SlowRate, SlowLimit float64
	SlowCall            time.Duration // how long a call may take without being slow; 0 for no limit
	P50, P99            time.Duration // of a member of a group, if it keeps latencies

	Past  []Incident // the ended ones, the oldest first
	Rules Rules
}

// Limiter is the state of a limiter.
type Limiter struct {
	FreeIn time.Duration // until it has a free token, 0 if it has one
	// the rate and the burst with which it was configured, or 0 if it has none
	Events float64
	Per    time.Duration
	Burst  int
}

// Failure is a failed call. The fields are those of breaker.FailedCall.
type Failure struct {
	Time                time.Time
	Duration            time.Duration
	Kind, Message, Note string
}

// Incident is the time from an opening of a breaker until calls pass as usual again. Probes, and
// openings because of them, are part of it.
type Incident struct {
	Began, Ended time.Time
	Openings     int
	Cause        string // why it opened first
}

// Rules is a configuration in effect.
type Rules interface {
	// Settings returns the settings with their defaults. The values are in words.
	Settings() []Setting
}

// Setting is one field of a configuration.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Rule is the state of an alert rule after its latest evaluation.
type Rule struct {
	Name, Severity string
	Threshold      float64
	Below          bool      // the value is bad below the threshold; otherwise above it
	Unit           string    // of the value and the threshold: "ratio", "s" or ""
	Keys           int       // how many members fire, if the rule has members
	Worst          string    // the key of the one with the worst value
	NoData         string    // why the value had no data, and what that means, or "" if it had some
	Silenced       int       // how many firing alerts a silence holds back
	Since          time.Time // when the oldest of the firing alerts fired
	// Fault is why the latest evaluation failed, as the attribute error.type of metrics, or "".
	Fault        string
	FailingSince time.Time     // the first failed evaluation since the last success, or zero
	Interval     time.Duration // between evaluations
}

// Notifier is the state of a notifier of alerts after its latest attempt.
type Notifier struct {
	Name         string
	FailingSince time.Time // the first of the attempts that failed since the last success, or zero
	LastError    string    // of the latest attempt that failed
	DroppedAt    time.Time // when it last gave up a notification, or zero
}

// The functions of the packages. Each yields what a source of that package says, or nothing for
// other sources, and reports whether the source is one of that package.
var (
	Breakers func(source any, yield func(*Breaker)) (known bool)
	Gates    func(source any, yield func(*Breaker)) (known bool)
	Alerts   func(source any, rule func(*Rule), notifier func(*Notifier)) (known bool)
	// Limiters returns the zero value for a source that is no limiter of this module.
	Limiters func(source any) Limiter
	// Parts yields the limiters that a source consists of, with the names that their metrics have.
	// It has one function per package with such sources.
	Parts []func(source any, yield func(name string, limiter any))
)
