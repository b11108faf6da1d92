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

// Names of the labels that the monitor itself gives to an alert.
const (
	labelRule     = "alertname" // the rule's name, as Prometheus calls it
	labelSeverity = "severity"  // the rule's severity, where it has one
	labelKey      = "key"       // the member's key, for rules over Each
	labelInstance = "instance"  // Config.Instance, for rules without such a label of their own
)

// Bounds of what an alert carries, in bytes. Receivers refuse, or cut, what is much longer.
const (
	maxLabels    = 32 // of a rule, besides the monitor's own
	maxLabelName = 128
	maxLabel     = 1024
	maxSummary   = 4096

	maxAnnotations = 16
	maxAnnotation  = 4096
)

var labelName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// labelsOf returns the labels of a rule's alert for the member with the label.
func labelsOf(r *Rule, member string) map[string]string {
	labels := map[string]string{labelRule: r.Name}
	maps.Copy(labels, r.Labels)
	if r.Severity != "" {
		labels[labelSeverity] = r.Severity
	}
	if member != "" {
		labels[labelKey] = member
	}
	return labels
}

// labelText returns the text as the value of a label. A text that is not UTF-8, or too long, is
// mended and cut, and gets a hash of the whole at its end. Such a value always holds U+FFFD, and a
// text that holds it gets a hash too, so that no two texts have the same value.
func labelText(text string) string {
	if len(text) <= maxLabel && utf8.ValidString(text) && !strings.ContainsRune(text, utf8.RuneError) {
		return text
	}
	hash := sha256.Sum256([]byte(text))
	mended := strings.ToValidUTF8(cut(text, maxLabel-len("\uFFFD")-32), "?")
	return mended + "\uFFFD" + hex.EncodeToString(hash[:16])
}

// cut returns no more of the text than so many bytes, and no part of a character.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

// summaryText cuts what is too long for a line.
func summaryText(text string) string {
	if len(text) <= maxSummary {
		return text
	}
	return cut(text, maxSummary-len("…")) + "…"
}

// ownInstance names this process, as no other does at the same time.
func ownInstance() string {
	host, err := os.Hostname()
	if err != nil {
		host = rand.Text()
	}
	return labelText(host + ":" + strconv.Itoa(os.Getpid()))
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
