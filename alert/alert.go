package alert

import (
	"fmt"
	"time"
)

// Alert is the state of one rule, or of one member of a rule over [Each], at an evaluation.
type Alert struct {
	// ID is the same for the same labels, at every time: 16 hexadecimal digits, the fingerprint that
	// Prometheus and Alertmanager compute of the labels. The label "instance" makes it differ between
	// processes: see Config.Instance.
	ID string
	// Rule is the name of the rule.
	Rule string
	// Key is the label "key": the key of the member, for rules over Each.
	Key string
	// Labels are those of the rule, with "alertname", "severity", "instance" and "key".
	Labels map[string]string
	// Annotations are those of the rule. Receivers get Summary as the annotation "summary".
	Annotations map[string]string
	// Summary is one line for a human, of at most 4,096 bytes.
	Summary string
	// State is Pending, Firing or Resolved.
	State State
	// Value is the latest value that had data.
	Value float64
	// Calls and Bad are how many calls Value is made of, and how many of those were bad, if the value
	// counts them.
	Calls, Bad int64
	// ActiveAt is when the condition began to hold.
	ActiveAt time.Time
	// StartsAt is when the alert fired. It is zero while the alert is pending.
	StartsAt time.Time
	// EndsAt is when the alert resolved. It is zero until then.
	EndsAt time.Time
}

func (a Alert) String() string { return fmt.Sprintf("%s: %s: %s", a.title(), a.State, a.Summary) }

// title names the alert for a human.
func (a Alert) title() string {
	if a.Key == "" {
		return a.Rule
	}
	return a.Rule + " (" + a.Key + ")"
}
