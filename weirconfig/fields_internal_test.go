package weirconfig

import (
	"encoding"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// structTypes returns the structs of a document, each once.
func structTypes(typ reflect.Type, found []reflect.Type) []reflect.Type {
	for typ.Kind() == reflect.Map || typ.Kind() == reflect.Slice {
		typ = typ.Elem()
	}
	if typ.Kind() != reflect.Struct || slices.Contains(found, typ) || reflect.PointerTo(typ).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return found
	}
	found = append(found, typ)
	for _, f := range fieldsOf(typ) {
		if f.omitted == "" {
			found = structTypes(f.Type, found)
		}
	}
	return found
}

// Each field that is added to a config of the library can be set from a file, or must be added to
// this list.
func TestOnlyTheseFieldsCannotBeInAFile(t *testing.T) {
	var missing []string
	for _, s := range structTypes(reflect.TypeFor[document](), nil) {
		for _, f := range fieldsOf(s) {
			if f.omitted != "" {
				missing = append(missing, s.String()+"."+f.Name)
			}
		}
	}
	slices.Sort(missing)
	require.Equal(t, []string{
		"alert.Config.Logger", "alert.Config.Notify",
		"breaker.Config.Classify", "breaker.Config.DescribeFailure", "breaker.Config.OnChange",
		"breaker.Config.SharedCounts", "breaker.Config.Trace", "breaker.Config.Trip",
		"weirconfig.limit.Answer", "weirconfig.limit.Cost", "weirconfig.limit.OnRefusal",
		"weirconfig.policy.Quota", "weirconfig.policy.Remote", "weirconfig.policy.When",
		"weirconfig.rule.Describe",
		"weirconfig.sink.Name", "weirconfig.sink.Transport",
	}, missing)
}

// validTexts has a valid value for each field whose type alone does not determine one.
var validTexts = map[string]string{
	"limit.proxies": "{header: X-Real-Ip}", "Proxies.trusted": "[10.0.0.0/8]", "limit.policies": "[{name: a, rate: 1/s, by: ip}]",
	"document.gates": "{a: {rate: 1/s}}", "document.groups": "{a: {max_keys: 2}}", "document.limits": "{a: {legacy: true}}",
	"document.monitor": "{interval: 1s}", "document.sinks": "{a: {kind: log}}", "document.rules": "[]",
	"GroupConfig.gate": "{rate: 1/s}", "weir.Config.breaker": "{probes: 2}", "sink.breaker": "{probes: 2}",
	"rule.labels": "{a: b}", "rule.annotations": "{a: b}", "sink.header": "{A: b}",
	"sink.url": "http://127.0.0.1", "sink.kind": "webhook", "sink.template": "'{}'", "sink.key": "whsec_MDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAw",
	"rule.of": "a", "rule.value": "failure_rate", "rule.resolve": "below 0.5%", "policy.by": "ip", "policy.max_keys": "9",
}

// validText returns a valid text of a property.
func validText(p property, name string) string {
	if text := validTexts[name+"."+p.key]; text != "" {
		return text
	}
	v := reflect.New(p.typ).Elem()
	switch {
	case len(p.words) > 0:
		return p.words[0]
	case p.typ == durationType:
		return "30m"
	case v.Kind() == reflect.Bool:
		return "true"
	case v.CanInt():
		return "1"
	case v.CanFloat():
		return "1"
	}
	return map[string]string{"limiter.Rate": "5/s", "weirconfig.condition": "above 5%"}[p.typ.String()]
}

func TestEveryFieldCanBeSet(t *testing.T) {
	for _, s := range structTypes(reflect.TypeFor[document](), nil) {
		for _, p := range properties(t, comments{}, s) {
			name := structName(s)
			text := validText(p, name)
			if text == "" {
				text = "some-text"
			}
			d := newDecoder(readBounded)
			root, err := parseNode("file", []byte(p.key+": "+text))
			require.NoError(t, err)
			v := reflect.New(s).Elem()
			d.decode(root, v, "")
			require.Empty(t, d.faults, "%s.%s", name, p.key)
			for _, f := range fieldsOf(s) {
				field := v.FieldByIndex(f.index)
				isSet := !field.IsZero()
				require.Equal(t, f.key == p.key, isSet, "%s of %v after setting %s to %s", f.key, s, p.key, text)
			}
		}
	}
}
