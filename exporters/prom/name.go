package prom

import (
	"slices"
	"strings"

	"github.com/weir-go/weir/stat"
)

// units maps UCUM units to the words of Prometheus, as in the OpenTelemetry specification. Other
// units are not translated.
var units = map[string]string{
	"d": "days", "h": "hours", "min": "minutes", "s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds",
	"By": "bytes", "KiBy": "kibibytes", "MiBy": "mebibytes", "GiBy": "gibibytes", "TiBy": "tibibytes",
	"KBy": "kilobytes", "MBy": "megabytes", "GBy": "gigabytes", "TBy": "terabytes",
	"m": "meters", "V": "volts", "A": "amperes", "J": "joules", "W": "watts", "g": "grams",
	"Cel": "celsius", "Hz": "hertz", "1": "", "%": "percent",
}

var perUnitWords = map[string]string{
	"s": "second", "m": "minute", "h": "hour", "d": "day", "w": "week", "mo": "month", "y": "year",
}

// metricName returns the name that OpenTelemetry's exporter for Prometheus gives the instrument.
// For example, the counter weir.breaker.state_time in s is weir_breaker_state_time_seconds_total.
func metricName(i *stat.Instrument) string {
	tokens := splitWords(i.Name)
	unit, per, _ := strings.Cut(i.Unit, "/")
	tokens = appendIfMissing(tokens, unitWord(unit, units))
	if word := unitWord(per, perUnitWords); word != "" {
		tokens = appendIfMissing(tokens, "per_"+word)
	}
	switch {
	case i.Kind == stat.Counter:
		tokens = moveToEnd(tokens, "total")
	case i.Kind == stat.Gauge && i.Unit == "1":
		tokens = moveToEnd(tokens, "ratio")
	}
	return escapeDigit(strings.Join(tokens, "_"), "_")
}

// metricNames returns all names that the instrument occupies. A distribution has further names for
// its buckets, count and sum.
func metricNames(i *stat.Instrument) []string {
	name := metricName(i)
	if i.Kind != stat.Distribution {
		return []string{name}
	}
	return []string{name, name + "_bucket", name + "_count", name + "_sum"}
}

// labelNames returns the label names of the attributes.
func labelNames(i *stat.Instrument) []string {
	names := make([]string, len(i.Attrs))
	for n, key := range i.Attrs {
		names[n] = escapeDigit(replaceOthers(key), "key_")
	}
	return names
}

// unitWord returns the word for a unit, or "" if there is no unit or an annotation such as {call}.
func unitWord(unit string, table map[string]string) string {
	unit = strings.TrimSpace(unit)
	if strings.ContainsAny(unit, "{}") {
		return ""
	}
	if word, ok := table[unit]; ok {
		return word
	}
	return strings.TrimPrefix(replaceOthers(unit), "_")
}

// splitWords splits the name at characters that Prometheus does not allow.
func splitWords(name string) []string {
	return strings.FieldsFunc(name, func(r rune) bool { return !isAlphanumeric(r) && r != ':' })
}

// replaceOthers replaces each run of characters that are not alphanumeric with one underscore.
func replaceOthers(text string) string {
	var b strings.Builder
	gap := false
	for _, r := range text {
		if plain := isAlphanumeric(r); plain || !gap {
			if !plain {
				r = '_'
			}
			b.WriteRune(r)
			gap = !plain
		}
	}
	return b.String()
}

func isAlphanumeric(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
}

func appendIfMissing(tokens []string, word string) []string {
	if word == "" || slices.Contains(tokens, word) {
		return tokens
	}
	return append(tokens, word)
}

func moveToEnd(tokens []string, word string) []string {
	return append(slices.DeleteFunc(tokens, func(t string) bool { return t == word }), word)
}

func escapeDigit(name, prefix string) string {
	if name != "" && name[0] >= '0' && name[0] <= '9' {
		return prefix + name
	}
	return name
}
