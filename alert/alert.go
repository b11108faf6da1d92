package alert

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
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

// The labels that the monitor sets.
const (
	labelRule     = "alertname" // the rule's name, as in Prometheus
	labelSeverity = "severity"  // the rule's severity, if it has one
	labelKey      = "key"       // the member's key, for rules over Each
	labelInstance = "instance"  // Config.Instance, unless the rule has such a label
)

// The limits of what an alert carries. Lengths are in bytes. Receivers refuse or cut longer texts.
const (
	maxLabels    = 32 // of a rule, not counting the labels that the monitor sets
	maxLabelName = 128
	maxLabel     = 1024
	maxSummary   = 4096

	maxAnnotations = 16
	maxAnnotation  = 4096
)

var labelName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// labelsOf returns the labels of the rule's alert. If key is not empty, the alert is about the
// member with that key.
func labelsOf(r *Rule, key string) map[string]string {
	labels := map[string]string{labelRule: r.Name}
	maps.Copy(labels, r.Labels)
	if r.Severity != "" {
		labels[labelSeverity] = r.Severity
	}
	if key != "" {
		labels[labelKey] = key
	}
	return labels
}

// labelText returns the text as a label's value. A text that is not UTF-8 or too long is made valid
// and cut, and U+FFFD and a hash of the whole text are appended. The same is done to a text that
// contains U+FFFD, so that no two texts have the same value.
func labelText(text string) string {
	if len(text) <= maxLabel && utf8.ValidString(text) && !strings.ContainsRune(text, utf8.RuneError) {
		return text
	}
	hash := sha256.Sum256([]byte(text))
	valid := strings.ToValidUTF8(truncate(text, maxLabel-len("\uFFFD")-32), "?")
	return valid + "\uFFFD" + hex.EncodeToString(hash[:16])
}

// truncate returns at most the first n bytes of the text, without splitting a character.
func truncate(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// summaryText truncates the text to the length of a summary.
func summaryText(text string) string {
	if len(text) <= maxSummary {
		return text
	}
	return truncate(text, maxSummary-len("…")) + "…"
}

// ownInstance returns a name that no other process has at the same time.
func ownInstance() string {
	host, err := os.Hostname()
	if err != nil {
		host = rand.Text()
	}
	return labelText(host + ":" + strconv.Itoa(os.Getpid()))
}

// fingerprint computes the fingerprint of Prometheus' model.LabelSet: FNV-1a over the sorted names
// and values, each followed by 0xff.
func fingerprint(labels map[string]string) string {
	h := fnv.New64a()
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		fmt.Fprintf(h, "%s\xff%s\xff", name, labels[name])
	}
	return fmt.Sprintf("%016x", h.Sum64())
}
