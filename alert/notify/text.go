package notify

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/limiter"
)

// title returns the state, the rule and the key of an alert, as in "[FIRING] errors (db-1)".
func title(a alert.Alert) string {
	text := "[" + strings.ToUpper(string(a.State)) + "] " + a.Rule
	if a.Key != "" {
		text += " (" + a.Key + ")"
	}
	return oneLine(text)
}

// oneLine replaces line breaks and other control characters by spaces, so that a name cannot forge
// further lines of a message.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, text)
}

// shortened returns at most n characters of a text, in valid UTF-8.
func shortened(text string, n int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= n {
		return text
	}
	count, end := 0, 0 // end is where the text is cut if it is too long
	for at := range text {
		if count == n-1 {
			end = at
		}
		if count == n {
			return text[:end] + "…"
		}
		count++
	}
	return text
}

// valueText returns the value of an alert as text, without loss of precision.
func valueText(a alert.Alert) string { return strconv.FormatFloat(a.Value, 'g', -1, 64) }

// isLink reports whether the text is an http or https address. Annotations come from the author of
// a rule and can be trusted, so an annotation that is an address may be shown as a link.
func isLink(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https") && !strings.ContainsAny(text, "<>| \"")
}

// detail is a label or an annotation to show.
type detail struct{ name, value string }

// details returns the labels except the rule's name, and then the annotations except the summary.
func details(a alert.Alert) (labels, annotations []detail) {
	for _, name := range slices.Sorted(maps.Keys(a.Labels)) {
		if name != "alertname" {
			labels = append(labels, detail{name, a.Labels[name]})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a.Annotations)) {
		if name != "summary" {
			annotations = append(annotations, detail{name, a.Annotations[name]})
		}
	}
	return labels, annotations
}

// newRateLimiter returns a limiter that keeps the rate of a receiver.
func newRateLimiter(rate limiter.Rate, burst int) *limiter.TokenBucket {
	return limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: rate, Burst: burst})
}
