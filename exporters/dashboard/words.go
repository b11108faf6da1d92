package dashboard

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/weir-go/weir/stat/view"
)

// failureText returns a failed call in one line, such as
//
//	network error after 1.2 s: dial tcp: connection refused (trace 4bf92f)
func failureText(f view.Failure) string {
	text := errorClass(f.Kind)
	if f.Duration >= time.Microsecond {
		text += " after " + plainDuration(f.Duration)
	}
	if f.Message != "" {
		text += ": " + messageText(f.Message)
	}
	if f.Note != "" {
		text += " (" + oneLine(f.Note) + ")"
	}
	return text
}

// messageText returns the message of an error in one line. Only durations with a fraction are
// rounded: others are readable, and may be parts of names.
func messageText(message string) string {
	return goDurations.ReplaceAllStringFunc(oneLine(message), func(found string) string {
		if !strings.Contains(found, ".") {
			return found
		}
		return withPlainDurations(found)
	})
}

// oneLine replaces line breaks and other control characters with spaces.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}

// classes are the words for kinds of failures whose types do not say what they are.
var classes = map[string]string{
	"result": "failed result", "recorded": "recorded failure",
	"*net.OpError": "network error", "*net.DNSError": "DNS error", "*url.Error": "HTTP error", "*poll.DeadlineExceededError": "timeout",
	"context.deadlineExceededError": "timeout", "syscall.Errno": "system error", "*textproto.Error": "error status",
}

// errorClass returns the kind of a failure in words. A Go type that is not in classes becomes the
// words of its name, after its package if that name is only Error: *pq.Error is "pq error".
func errorClass(kind string) string {
	if words, ok := classes[kind]; ok {
		return words
	}
	packageName, typeName, isType := strings.Cut(strings.TrimLeft(kind, "*"), ".")
	if !isType || strings.ContainsAny(kind, " []{}") {
		return kind
	}
	words := strings.ToLower(wordBegins.ReplaceAllString(typeName, "$1 $2"))
	if words == "error" || words == "err" {
		return packageName + " error"
	}
	if !strings.Contains(words, "err") {
		words += " error"
	}
	return words
}

// wordBegins matches the places in a Go name where a word begins.
var wordBegins = regexp.MustCompile(`(\p{Ll}|\d)(\p{Lu})`)

// goDurations matches durations in the form of time.Duration.
var goDurations = regexp.MustCompile(`\b(\d+(\.\d+)?(h|ms|m|s|µs|ns))+\b`)

// withPlainDurations returns the text with its durations rounded for people.
func withPlainDurations(text string) string {
	return goDurations.ReplaceAllStringFunc(text, func(found string) string {
		d, err := time.ParseDuration(found)
		if err != nil {
			return found
		}
		return plainDuration(d)
	})
}

// plainDuration returns a duration rounded for people: "203 ms", "1.2 s", "2 min 5 s", "3 h".
func plainDuration(d time.Duration) string {
	switch {
	case d <= 0:
		return "0 s"
	case d < time.Microsecond:
		return fmt.Sprintf("%d ns", d)
	case d < 999500*time.Nanosecond:
		return threeDigits(float64(d)/1e3) + " µs"
	case d < 999500*time.Microsecond:
		return threeDigits(float64(d)/1e6) + " ms"
	case d < time.Minute-50*time.Millisecond:
		return threeDigits(d.Seconds()) + " s"
	case d < time.Hour-500*time.Millisecond:
		return twoUnits(d, time.Minute, "min", time.Second, "s")
	case d < 48*time.Hour:
		return twoUnits(d, time.Hour, "h", time.Minute, "min")
	}
	return twoUnits(d, 24*time.Hour, "d", time.Hour, "h")
}

func threeDigits(v float64) string {
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 3, 64), 64)
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}

func twoUnits(d, unit time.Duration, name string, smaller time.Duration, smallerName string) string {
	d = d.Round(smaller)
	text := fmt.Sprintf("%d %s", d/unit, name)
	if rest := d % unit / smaller; rest > 0 {
		text += fmt.Sprintf(" %d %s", rest, smallerName)
	}
	return text
}
