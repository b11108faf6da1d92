package weirconfig

import (
	"encoding"
	"maps"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert/notify"
)

// property is a field that a file can have, with all that is known about it. Its bounds are those
// that the faults of Parse name.
type property struct {
	key, doc      string
	typ           reflect.Type
	defaultText   string // as the comment says it, "" if it says none
	required, off bool
	zero          bool     // 0 is valid, and means the default
	low, high     string   // in the words of a fault, "" for none
	words         []string // of an enum
}

// sample is a valid file with one object of a type, in which a field can be replaced.
type sample struct {
	before, after string
	fields        map[string]string
}

// samples has a file for each struct. The fields of a sample are set so that every other field can
// be set too.
var samples = map[string]sample{
	"document":       {},
	"weir.Config":    {"gates: {a: {", "}}", map[string]string{"rate": "1/s", "max_concurrent": "1"}},
	"breaker.Config": {"gates: {a: {breaker: {", "}}}", map[string]string{"slow_call": "1s"}},
	"GroupConfig":    {"groups: {a: {", "}}", nil},
	"limit":          {"limits: {a: {", "}}", nil},
	"Proxies":        {"limits: {a: {proxies: {", "}}}", nil},
	"policy":         {"limits: {a: {policies: [{", "}]}}", map[string]string{"name": "a", "by": "ip"}},
	"alert.Config":   {"monitor: {", "}", nil},
	"rule":           {"{gates: {a: {breaker: {latency: true, slow_call: 1s}}}, rules: [{", "}]}", map[string]string{"name": "a", "of": "a", "value": "failure_rate", "when": "above 1%", "span": "1m"}},
	"sink":           {"sinks: {a: {", "}}", map[string]string{"kind": "webhook", "url": "http://localhost"}},
}

// neededFields lists, for one field of a sample, the other fields that the sample then needs.
var neededFields = map[string]map[string]string{
	"policy.limit":                {"window": "1h"},
	"policy.window":               {"limit": "1"},
	"policy.burst":                {"rate": "1/s"},
	"weir.Config.retry_burst":     {"retry_share": "0.1"},
	"rule.slo":                    {"value": "burn_rate", "when": "above 0.1"},
	"rule.short_span":             {"value": "burn_rate", "when": "above 0.1", "slo": "90%", "span": "1h"},
	"rule.quantile":               {"value": "quantile", "when": "above 0.1"},
	"breaker.Config.last_calls":   {"slow_call": "1s"},
	"breaker.Config.force_reason": {"force": "forced_open"},
}

// faultOf returns the fault of a field with a value in the sample of a struct, or "".
func faultOf(t *testing.T, name, key, value string) string {
	t.Helper()
	s, known := samples[name]
	require.True(t, known, "no sample of %s", name)
	text := s.before + key + `: "` + value + `"`
	if name == "policy" && neededFields[name+"."+key] == nil && key != "rate" {
		text += ", rate: 1/s"
	}
	fields := map[string]string{}
	for _, more := range []map[string]string{s.fields, neededFields[name+"."+key]} {
		maps.Copy(fields, more)
	}
	for k, v := range fields {
		if k != key {
			text += ", " + k + `: "` + v + `"`
		}
	}
	_, err := Parse("sample", []byte(text+s.after))
	if err == nil {
		return ""
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		if _, fault, found := strings.Cut(line, ": "+key+" is "); found {
			return fault
		}
	}
	t.Errorf("%s of %s is %q: %v", key, name, value, err)
	return ""
}

// structName returns the name of a struct in samples.
func structName(t reflect.Type) string {
	if _, known := samples[t.String()]; known {
		return t.String()
	}
	return t.Name()
}

// properties returns the fields of a struct.
func properties(t *testing.T, c comments, s reflect.Type) (all []property) {
	for _, f := range fieldsOf(s) {
		if f.omitted != "" {
			continue
		}
		owner := s
		if len(f.Index) > 1 {
			owner = s.FieldByIndex(f.Index[:len(f.Index)-1]).Type
		}
		p := property{key: f.key, doc: c.of(t, owner, f.Name), typ: f.Type}
		for _, word := range []string{"Default ", "Default: ", "With the default, limiter."} {
			if _, text, found := strings.Cut(p.doc, word); found {
				p.defaultText = strings.TrimSuffix(text, ".")
			}
		}
		p.required = strings.HasSuffix(p.doc, "Required.") && structName(s)+"."+p.key != "sink.url"
		p.findBounds(t, structName(s))
		all = append(all, p)
	}
	return all
}

var (
	betweenPattern = regexp.MustCompile(`between ([^ ,]+) and ([^ ,]+)`)
	atLeastPattern = regexp.MustCompile(`must be at least ([0-9]+)`)
	abovePattern   = regexp.MustCompile(`must be above 0 and at most 1`)
	atMostPattern  = regexp.MustCompile(`must be at most ([0-9]+)`)
)

// findBounds finds the bounds of a property by the faults of values that are out of bounds.
func (p *property) findBounds(t *testing.T, name string) {
	v := reflect.New(p.typ).Elem()
	_, isText := reflect.TypeAssert[encoding.TextUnmarshaler](v.Addr())
	var low, high string
	switch {
	case p.typ == durationType:
		low, high = "-2s", "2000000h"
	case v.CanInt():
		low, high = "-2", "9223372036854775807"
	case v.CanFloat():
		low, high = "-2", "1e300"
	case isText || v.Kind() == reflect.String:
		if v.Kind() == reflect.String {
			p.findWords(t, name)
		}
		return
	default:
		return
	}
	p.off = faultOf(t, name, p.key, off) == ""
	p.zero = faultOf(t, name, p.key, "0") == ""
	for _, value := range []string{low, high} {
		fault := faultOf(t, name, p.key, value)
		if m := betweenPattern.FindStringSubmatch(fault); m != nil {
			p.low, p.high = m[1], m[2]
		} else if m := atLeastPattern.FindStringSubmatch(fault); m != nil && value == low {
			p.low = m[1]
		} else if abovePattern.MatchString(fault) {
			p.low, p.high = "0", "1"
		} else if value == low && strings.Contains(fault, "must not be negative") {
			p.low = "0"
		} else if value == low && strings.Contains(fault, "must be positive") {
			p.low = "above 0"
		} else if m := atMostPattern.FindStringSubmatch(fault); m != nil && value == high {
			p.high = m[1]
		}
		require.False(t, value == low && fault == "", "%s of %s can be %s", p.key, name, low)
		require.False(t, fault != "" && p.low == "" && p.high == "", "%s of %s has a bound that is not known: %s", p.key, name, fault)
	}
}

// isFreeText reports whether a value of the type can be any text.
func isFreeText(t reflect.Type) bool {
	return t == reflect.TypeFor[string]() || t == reflect.TypeFor[notify.Secret]()
}

// findWords finds the words of an enum.
func (p *property) findWords(t *testing.T, name string) {
	if p.key == "name" || isFreeText(p.typ) {
		return
	}
	fault := faultOf(t, name, p.key, "no-such-word")
	_, text, found := strings.Cut(fault, "must be ")
	require.True(t, found, "%s of %s can be any word: %s", p.key, name, fault)
	for word := range strings.SplitSeq(strings.ReplaceAll(text, " or ", ", "), ", ") {
		p.words = append(p.words, strings.Trim(word, `"`))
		require.Empty(t, p.wordFault(t, name, strings.Trim(word, `"`)))
	}
}

func (p *property) wordFault(t *testing.T, name, word string) string {
	if name == "rule" || name == "sink" {
		return "" // a value needs other fields
	}
	return faultOf(t, name, p.key, word)
}
