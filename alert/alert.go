package alert

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"
)

// Alert is one rule, or one member of a rule over [Each], as it stands at an
// evaluation: a plain value for whoever wants to know.
type Alert struct {
	// ID is the same for the same rule and labels, in every process and at every
	// time: 16 hexadecimal digits, the fingerprint that Prometheus and Alertmanager
	// compute of the same labels.
	ID       string
	Rule     string            // the rule's name
	Key      string            // the member's key, for rules over Each
	Severity string            // of the rule
	Labels   map[string]string // the rule's, with alertname, severity and key
	Summary  string            // one line for a human
	State    State             // Inactive with EndsAt set: resolved
	Value    float64           // the latest figure there was
	Calls    int64             // how many calls it rests on, where it counts them
	Bad      int64             // how many of those were bad, where it counts them
	ActiveAt time.Time         // since when the condition has held
	StartsAt time.Time         // since when it has fired; zero while pending
	EndsAt   time.Time         // when it resolved; zero until then
}

// Resolved says whether the alert has fired and fires no more.
func (a Alert) Resolved() bool { return a.State == Inactive && !a.EndsAt.IsZero() }

// Status is the alert's state in the words of Alertmanager: "resolved" for an
// alert that has fired and fires no more, else the name of the state.
func (a Alert) Status() string {
	if a.Resolved() {
		return "resolved"
	}
	return a.State.String()
}

func (a Alert) String() string { return fmt.Sprintf("%s: %s: %s", a.title(), a.Status(), a.Summary) }

// title names the alert for a human.
func (a Alert) title() string {
	if a.Key == "" {
		return a.Rule
	}
	return a.Rule + " (" + a.Key + ")"
}

// labelsOf returns the labels of a rule's alert for the member with the key.
func labelsOf(r *Rule, key string) map[string]string {
	labels := map[string]string{LabelName: r.Name}
	maps.Copy(labels, r.Labels)
	if r.Severity != "" {
		labels[LabelSeverity] = r.Severity
	}
	if key != "" {
		labels[LabelKey] = strings.ToValidUTF8(key, "\uFFFD")
	}
	return labels
}

// fingerprint is the one of Prometheus's model.LabelSet: FNV-1a over the sorted
// names and values, each followed by 0xff.
func fingerprint(labels map[string]string) string {
	h := fnv.New64a()
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		fmt.Fprintf(h, "%s\xff%s\xff", name, labels[name])
	}
	return fmt.Sprintf("%016x", h.Sum64())
}
