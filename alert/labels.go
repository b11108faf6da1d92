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
	"unicode/utf8"
)

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
