package alert

import (
	"fmt"
	"time"
)

// Alert is the state of one rule, or of one member of a rule over [Each], at an evaluation.
type Alert struct {
	// ID identifies the alert by its labels. It is the fingerprint that Prometheus and Alertmanager
	// compute from the same labels, 16 hexadecimal digits. Alerts of different processes have
	// different IDs because of the label "instance": see Config.Instance.
	ID string
	// Rule is the name of the rule.
	Rule string
	// Key is the label "key": the key of the member, for rules over Each.
	Key string
	// Labels are the labels of the rule, and "alertname", "severity", "instance" and "key".
	Labels map[string]string
	// Annotations are those of the rule. Receivers get Summary as the annotation "summary".
	Annotations map[string]string
	// Summary describes the problem in at most 4,096 bytes, in one line unless Rule.Describe adds
	// more.
	Summary string
	// State is Pending, Firing or Resolved.
	State State
	// Value is the latest value for which there was data.
	Value float64
	// NoData says why the latest evaluation had no data, such as "no calls in the span". It is
	// empty if there was data.
	NoData string
	// Calls is how many calls Value is computed from, and Bad how many of them were bad. They are 0
	// for values that do not count calls.
	Calls, Bad int64
	// ActiveAt is when the condition began to hold.
	ActiveAt time.Time
	// StartsAt is when the alert fired, or the zero time while it is pending.
	StartsAt time.Time
	// EndsAt is when the alert resolved, or the zero time before that.
	EndsAt time.Time
	// SilencedBy is the name of a [Silence] that matches the alert, or empty if there is none.
	SilencedBy string
}

// String returns the rule, the key, the state and the summary of a.
func (a Alert) String() string {
	if a.Key == "" {
		return fmt.Sprintf("%s: %s: %s", a.Rule, a.State, a.Summary)
	}
	return fmt.Sprintf("%s (%s): %s: %s", a.Rule, a.Key, a.State, a.Summary)
}
