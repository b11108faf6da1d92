package prom

import (
	"slices"
	"strings"

	"github.com/weir-go/weir/stat"
)

// units are the words that Prometheus uses for units of UCUM, as the
// OpenTelemetry specification maps them. Others are taken as they are.
var units = map[string]string{
	"d": "days", "h": "hours", "min": "minutes", "s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds",
	"By": "bytes", "KiBy": "kibibytes", "MiBy": "mebibytes", "GiBy": "gibibytes", "TiBy": "tibibytes",
	"KBy": "kilobytes", "MBy": "megabytes", "GBy": "gigabytes", "TBy": "terabytes",
	"m": "meters", "V": "volts", "A": "amperes", "J": "joules", "W": "watts", "g": "grams",
	"Cel": "celsius", "Hz": "hertz", "1": "", "%": "percent",
}

var perUnits = map[string]string{
	"s": "second", "m": "minute", "h": "hour", "d": "day", "w": "week", "mo": "month", "y": "year",
}

// metricName gives the name that OpenTelemetry's own exporter for Prometheus
// gives the instrument: weir.breaker.state.time in s is a counter, so
// weir_breaker_state_time_seconds_total.
func metricName(i *stat.Instrument) string {
	tokens := words(i.Name)
	unit, per, _ := strings.Cut(i.Unit, "/")
	tokens = appendNew(tokens, unitWord(unit, units))
	if word := unitWord(per, perUnits); word != "" {
		tokens = appendNew(tokens, "per_"+word)
	}
	switch {
	case i.Kind == stat.Counter:
		tokens = moveLast(tokens, "total")
	case i.Kind == stat.Gauge && i.Unit == "1":
		tokens = moveLast(tokens, "ratio")
	}
	return escapeDigit(strings.Join(tokens, "_"), "_")
}

// metricNames gives all names that the instrument takes: a distribution has lines of
// its own for the buckets, the count and the sum.
func metricNames(i *stat.Instrument) []string {
	name := metricName(i)
	if i.Kind != stat.Distribution {
		return []string{name}
	}
	return []string{name, name + "_bucket", name + "_count", name + "_sum"}
}

// labelNames gives the names of the attributes as labels.
func labelNames(i *stat.Instrument) []string {
	names := make([]string, len(i.Attrs))
	for n, key := range i.Attrs {
		names[n] = escapeDigit(underscored(key), "key_")
	}
	return names
}

// unitWord is empty where there is no unit, or an annotation such as {call}.
func unitWord(unit string, table map[string]string) string {
	unit = strings.TrimSpace(unit)
	if strings.ContainsAny(unit, "{}") {
		return ""
	}
	if word, ok := table[unit]; ok {
		return word
	}
	return strings.TrimPrefix(underscored(unit), "_")
}

// words splits the name at what Prometheus does not allow in one.
func words(name string) []string {
	return strings.FieldsFunc(name, func(r rune) bool { return !isPlain(r) && r != ':' })
}

// underscored writes each run of characters that are not plain as one underscore.
func underscored(text string) string {
	var b strings.Builder
	gap := false
	for _, r := range text {
		if plain := isPlain(r); plain || !gap {
			if !plain {
				r = '_'
			}
			b.WriteRune(r)
			gap = !plain
		}
	}
	return b.String()
}

func isPlain(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
}

func appendNew(tokens []string, word string) []string {
	if word == "" || slices.Contains(tokens, word) {
		return tokens
	}
	return append(tokens, word)
}

func moveLast(tokens []string, word string) []string {
	return append(slices.DeleteFunc(tokens, func(t string) bool { return t == word }), word)
}

func escapeDigit(name, prefix string) string {
	if name != "" && name[0] >= '0' && name[0] <= '9' {
		return prefix + name
	}
	return name
}
