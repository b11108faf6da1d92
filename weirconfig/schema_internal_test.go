package weirconfig

import (
	"encoding/json"
	"flag"
	"math"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
)

var update = flag.Bool("update", false, "rewrite schema.json and docs/configuration.md")

// schema.json is written by the command
//
//	go test -C weirconfig . -run TestSchema -update
func TestSchemaIsUpToDate(t *testing.T) {
	s := schema{comments: comments{}, defs: object{
		"reference": object{"type": "string", "pattern": `\$\{`, "description": "A value with a reference such as ${NAME} or ${file:/path}."},
		"off":       object{"const": off, "description": "Turns the feature off."},
	}}
	root := s.of(t, reflect.TypeFor[document]())
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["$id"] = "https://raw.githubusercontent.com/weir-go/weir/main/weirconfig/schema.json"
	root["title"] = "weirconfig"
	root["description"] = "Gates, groups, limits, alert rules and sinks of a program that uses weir."
	root["properties"].(object)["$schema"] = object{"type": "string", "description": "The address of this schema, for editors."}
	root["$defs"] = s.defs
	want, err := json.MarshalIndent(root, "", "  ")
	require.NoError(t, err)
	want = append(want, '\n')
	if *update {
		require.NoError(t, os.WriteFile("schema.json", want, 0o644))
	}
	got, err := os.ReadFile("schema.json")
	require.NoError(t, err)
	require.Equal(t, string(want), string(got), "run the test with -update")
}

// object is a JSON object.
type object map[string]any

// schema is a JSON Schema that is being made.
type schema struct {
	comments comments
	defs     object
}

// defNames has the names of the structs below $defs.
var defNames = map[string]string{
	"weir.Config": "gate", "GroupConfig": "group", "breaker.Config": "breaker", "limit": "limit", "Proxies": "proxies",
	"policy": "policy", "alert.Config": "monitor", "rule": "rule", "sink": "sink",
}

// of returns the schema of a struct.
func (s *schema) of(t *testing.T, typ reflect.Type) object {
	fields, required := object{}, []string{}
	for _, p := range properties(t, s.comments, typ) {
		fields[p.key] = s.property(t, p)
		if p.required {
			required = append(required, p.key)
		}
	}
	o := object{"type": []string{"object", "null"}, "additionalProperties": false, "properties": fields}
	if len(required) > 0 {
		slices.Sort(required)
		o["required"], o["type"] = required, "object"
	}
	return o
}

// property returns the schema of a field.
func (s *schema) property(t *testing.T, p property) object {
	o := s.value(t, p, p.typ)
	o["description"] = p.doc
	if value, ok := p.defaultValue(); ok {
		o["default"] = value
	}
	return o
}

// value returns the schema of a value of a type.
func (s *schema) value(t *testing.T, p property, typ reflect.Type) object {
	v := reflect.New(typ).Elem()
	switch {
	case isText(v) || v.Kind() == reflect.String:
		return s.text(p, typ)
	case v.Kind() == reflect.Bool:
		return anyOf(object{"type": "boolean"}, object{"enum": []string{"true", "false"}}, ref("reference"))
	case typ == durationType:
		return s.duration(p)
	case v.CanInt() || v.CanFloat():
		return s.number(t, p, v)
	case v.Kind() == reflect.Slice:
		items := object{"type": "array", "items": s.value(t, p, typ.Elem())}
		if isTextType(typ.Elem()) {
			return anyOf(s.value(t, p, typ.Elem()), items)
		}
		return items
	case v.Kind() == reflect.Map:
		return object{
			"type": []string{"object", "null"}, "additionalProperties": s.value(t, p, typ.Elem()),
			"propertyNames": object{"minLength": 1, "maxLength": maxName},
		}
	}
	name := defNames[structName(typ)]
	require.NotEmpty(t, name, "no name of %v", typ)
	if _, known := s.defs[name]; !known {
		s.defs[name] = object{}
		s.defs[name] = s.of(t, typ)
	}
	return ref(name)
}

func ref(name string) object { return object{"$ref": "#/$defs/" + name} }

func anyOf(options ...object) object { return object{"anyOf": options} }

// patterns has the patterns of types that are read from a text, besides enums.
var patterns = map[reflect.Type]string{
	reflect.TypeFor[limiter.Rate](): `^(unlimited|[0-9.eE+-]+/[0-9a-zµ.]+)$`,
	reflect.TypeFor[condition]():    `^(above|below) -?[0-9.]`,
	reflect.TypeFor[keyFunc]():      `^(ip|route|nothing|header:.+)$`,
	reflect.TypeFor[netip.Prefix](): `^[0-9A-Fa-f:.]+/[0-9]+$`,
}

// text returns the schema of a text.
func (s *schema) text(p property, typ reflect.Type) object {
	switch pattern, known := patterns[typ]; {
	case known:
		return anyOf(object{"type": "string", "pattern": pattern}, ref("reference"))
	case len(p.words) > 0:
		return anyOf(object{"enum": p.words}, ref("reference"))
	}
	return object{"type": []string{"string", "number", "boolean"}}
}

// duration returns the schema of a duration, whose bounds are only in its description.
func (s *schema) duration(p property) object {
	options := []object{{"type": "string", "pattern": `^\+?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$`}}
	if p.zero {
		options = append(options, object{"const": 0})
	}
	return anyOf(append(options, p.otherForms()...)...)
}

// otherForms returns the schemas of off, if the property can be off, and of references.
func (p property) otherForms() (options []object) {
	if p.off {
		options = append(options, ref("off"))
	}
	return append(options, ref("reference"))
}

// number returns the schema of a number.
func (s *schema) number(t *testing.T, p property, v reflect.Value) object {
	o := object{"type": "number"}
	if v.CanInt() {
		o["type"], o["maximum"] = "integer", int64(math.MaxInt64)
	}
	for key, bound := range map[string]string{"minimum": p.low, "maximum": p.high} {
		if bound == "" {
			continue
		}
		x, err := strconv.ParseFloat(bound, 64)
		require.NoError(t, err, p.key)
		o[key] = x
		if key == "minimum" && p.zero {
			o[key] = 0
		}
	}
	form := `^\+?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?`
	if v.CanFloat() {
		form += `%?`
	}
	options := []object{o, {"type": "string", "pattern": form + `$`}}
	return anyOf(append(options, p.otherForms()...)...)
}

// defaultValue returns the default as a JSON value, if the comment says one value.
func (p property) defaultValue() (any, bool) {
	first, _, _ := strings.Cut(p.defaultText, " ")
	first = strings.ReplaceAll(strings.TrimRight(first, ",:."), ",", "")
	for _, word := range p.words {
		if strings.EqualFold(strings.NewReplacer("-", "", "_", "").Replace(word), first) {
			return word, true
		}
	}
	v := reflect.New(p.typ).Elem()
	if first == "" || isText(v) || isFreeText(p.typ) && p.key != "header" {
		return nil, false
	}
	switch {
	case v.Kind() > reflect.Float64 && v.Kind() != reflect.String, setScalar(v, first) != nil, len(p.words) > 0:
		return nil, false
	case p.typ == durationType && v.IsZero():
		return 0, true
	case p.typ == durationType:
		return first, true
	}
	return v.Interface(), true
}
