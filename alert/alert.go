package alert

import (
	"fmt"
	"time"
)

// Alert is one rule, or one member of a rule over [Each], as it stands at an
// evaluation: a plain value for whoever wants to know.
type Alert struct {
	// ID is the same for the same labels, at every time: 16 hexadecimal digits, the
	// fingerprint that Prometheus and Alertmanager compute of them. The label "instance"
	// makes it differ between processes: see Config.Instance.
	ID       string
	Rule     string            // the rule's name
	Key      string            // the label "key": the member's key, for rules over Each
	Labels   map[string]string // the rule's, with "alertname", "severity", "instance" and "key"
	Summary  string            // one line for a human, of at most 4,096 bytes
	State    State
	Value    float64   // the latest figure there was
	Calls    int64     // how many calls it rests on, where it counts them
	Bad      int64     // how many of those were bad, where it counts them
	ActiveAt time.Time // since when the condition has held
	StartsAt time.Time // since when it has fired; zero while pending
	EndsAt   time.Time // when it resolved; zero until then

	// Annotations are those of the rule. Receivers get Summary as the annotation "summary".
	Annotations map[string]string
}

func (a Alert) String() string { return fmt.Sprintf("%s: %s: %s", a.title(), a.State, a.Summary) }

// title names the alert for a human.
func (a Alert) title() string {
	if a.Key == "" {
		return a.Rule
	}
	return a.Rule + " (" + a.Key + ")"
}
