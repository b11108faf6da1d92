package config

import (
	"cmp"
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// decoder reads YAML into structs, and collects everything that is wrong.
//
// The key of a field is its Go name in lower case, with or without underscores, so a field that is
// added to a struct needs no line here. It differs from the decoder of the YAML library in that
// every fault has a line and a path, and in the forms of numbers: 25% is 0.25, and off is -1.
type decoder struct {
	faults []fault
	places map[string]place // of all fields in the file, by their plain path
}

// place is the position of a field in the file.
type place struct {
	line int
	path string // as in the file
}

// fault is one error in the file.
type fault struct {
	line int
	text string
}

func (d *decoder) fault(n *yaml.Node, path, format string, args ...any) {
	path = cmp.Or(path, "the file")
	d.faults = append(d.faults, fault{n.Line, path + " " + fmt.Sprintf(format, args...)})
}

// decode sets v to the value of n.
func (d *decoder) decode(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if _, known := d.places[normalizedName(path)]; !known {
		d.places[normalizedName(path)] = place{n.Line, path}
	}
	text, isText := reflect.TypeAssert[encoding.TextUnmarshaler](v.Addr())
	switch kind := v.Kind(); {
	case isText && n.Kind == yaml.ScalarNode:
		if err := text.UnmarshalText([]byte(n.Value)); err != nil {
			d.fault(n, path, "is invalid: %v", err)
		}
	case kind == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.decode(n, v.Elem(), path)
	case kind == reflect.Func:
		d.fault(n, path, "is a function, which a file cannot have")
	case kind == reflect.Struct && n.Tag == "!!null": // "breaker:" with nothing after it
	case kind == reflect.Struct:
		d.decodeStruct(n, v, path)
	case kind == reflect.Slice:
		d.decodeSlice(n, v, path)
	case n.Kind != yaml.ScalarNode || n.Tag == "!!null":
		d.fault(n, path, "must be %s", exampleValue(v))
	default:
		if err := setScalar(v, n.Value); err != nil {
			d.fault(n, path, "is %q, must be %s", n.Value, exampleValue(v))
		}
	}
}

func (d *decoder) decodeStruct(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.MappingNode {
		d.fault(n, path, "must be fields with values")
		return
	}
	fields := map[string]reflect.StructField{}
	var known []string
	for _, f := range reflect.VisibleFields(v.Type()) {
		if f.IsExported() && !f.Anonymous {
			fields[normalizedName(f.Name)] = f
			known = append(known, snake(f.Name))
		}
	}
	seen := map[string]bool{}
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		inner := strings.TrimPrefix(path+"."+key.Value, ".")
		f, ok := fields[normalizedName(key.Value)]
		switch {
		case !ok:
			slices.Sort(known)
			d.fault(key, inner, "is unknown, must be one of %s", strings.Join(known, ", "))
		case seen[f.Name]:
			d.fault(key, inner, "is there twice")
		default:
			seen[f.Name] = true
			d.places[normalizedName(inner)] = place{key.Line, inner}
			d.decode(value, v.FieldByIndex(f.Index), inner)
		}
	}
}

func (d *decoder) decodeSlice(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.SequenceNode {
		d.fault(n, path, "must be a list")
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, item := range n.Content {
		d.decode(item, v.Index(i), fmt.Sprintf("%s[%d]", path, i))
	}
}

var duration = reflect.TypeFor[time.Duration]()

// setScalar sets v to the value of a text.
func setScalar(v reflect.Value, text string) (err error) {
	numeric := v.CanInt() || v.CanFloat()
	if numeric && text == "off" {
		text = map[bool]string{true: "-1ns", false: "-1"}[v.Type() == duration]
	}
	switch {
	case v.Type() == duration:
		var t time.Duration
		t, err = time.ParseDuration(text)
		v.SetInt(int64(t))
	case v.Kind() == reflect.String:
		v.SetString(text)
	case v.Kind() == reflect.Bool:
		var b bool
		b, err = strconv.ParseBool(text)
		v.SetBool(b)
	case v.CanInt():
		var n int64
		n, err = strconv.ParseInt(text, 10, v.Type().Bits())
		v.SetInt(n)
	case v.CanUint():
		var n uint64
		n, err = strconv.ParseUint(text, 10, v.Type().Bits())
		v.SetUint(n)
	case v.CanFloat():
		x, ok := parseNumber(text)
		if !ok {
			err = strconv.ErrSyntax
		}
		v.SetFloat(x)
	default:
		err = fmt.Errorf("a %v cannot be read from a file", v.Type())
	}
	return err
}

// exampleValue returns an example of a value of v's type, as written in a file.
func exampleValue(v reflect.Value) string {
	switch {
	case v.Type() == duration:
		return "a duration such as 500ms, 5s or 1m30s"
	case v.Kind() == reflect.Bool:
		return "true or false"
	case v.CanInt() || v.CanUint():
		return "a whole number"
	case v.CanFloat():
		return "a number such as 0.5 or 50%"
	}
	return "a text"
}

// normalizedName returns a path or a name in the form in which two spellings of a key are equal.
func normalizedName(path string) string {
	return strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(path))
}

// snake returns the Go name of a field as a key: failure_rate for FailureRate.
func snake(name string) string {
	var b strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
