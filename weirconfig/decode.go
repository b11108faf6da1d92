package weirconfig

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"
)

// decoder reads a tree of YAML into a document, and collects everything that is wrong with it.
//
// The key of a field is its Go name in snake case, so a field that is added to a Config of the
// library needs no code here. There are two differences to the decoder of the YAML library. Every
// fault has a line and a path, and values have other forms: 25% is 0.25, and off is -1.
type decoder struct {
	faults []fault
	places map[string]place // of all fields in the file, by their paths
	refs   *references

	faulty    map[string]bool     // the paths of objects with faults
	faultyKey map[string]bool     // the paths of fields that the text of a fault begins with
	refsIn    map[string][]string // the references in the values of objects, by their paths
	hints     int                 // how much work may still be done to find words that were meant
}

func newDecoder(read reader) *decoder {
	return &decoder{
		places: map[string]place{}, refs: newReferences(read), faulty: map[string]bool{}, faultyKey: map[string]bool{},
		refsIn: map[string][]string{}, hints: maxHints,
	}
}

// unknownField adds a fault about a key that is not one of the known keys. The known field that was
// likely meant is marked as bad, so that it is not also reported as missing.
func (d *decoder) unknownField(key *yaml.Node, path string, known []string) {
	near := d.nearestWord(key.Value, slices.Values(known))
	if near == "" {
		d.fault(key.Line, path, "%.60s is unknown, must be one of %s", quotedKey(key.Value), strings.Join(known, ", "))
		return
	}
	d.fault(key.Line, path, "%.60s is unknown, did you mean %s?", quotedKey(key.Value), near)
	if _, there := d.places[join(path, near)]; !there {
		d.places[join(path, near)] = place{line: key.Line, bad: true}
	}
}

// place is the position of a field, with the faults and the secrets of its value.
type place struct {
	line int
	off  bool     // the value is the word off
	bad  bool     // the value has a fault already
	refs []string // the references in the value
}

// decode sets v to the value of n.
func (d *decoder) decode(n *yaml.Node, v reflect.Value, path string) {
	if _, known := d.places[path]; !known {
		d.places[path] = place{line: n.Line}
	}
	if isText(v) {
		d.decodeScalar(n, v, path)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		if !isNull(n) { // "breaker:" with nothing after it has the defaults
			d.decodeStruct(n, v, path)
		}
	case reflect.Map:
		if !isNull(n) {
			d.decodeMap(n, v, path)
		}
	case reflect.Slice:
		d.decodeSlice(n, v, path)
	default:
		d.decodeScalar(n, v, path)
	}
}

// isText reports whether the value is set by UnmarshalText.
func isText(v reflect.Value) bool {
	_, ok := reflect.TypeAssert[encoding.TextUnmarshaler](v.Addr())
	return ok
}

// isTextType reports whether values of the type are texts in a file.
func isTextType(t reflect.Type) bool {
	return t.Kind() == reflect.String || reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

func (d *decoder) decodeStruct(n *yaml.Node, v reflect.Value, path string) {
	fields := fieldsOf(v.Type())
	var known []string
	for _, f := range fields {
		if f.omitted == "" {
			known = append(known, f.key)
		}
	}
	d.eachEntry(n, path, func(key, value *yaml.Node) {
		if path == "" && key.Value == "$schema" && value.Kind == yaml.ScalarNode {
			return // for editors
		}
		at := slices.IndexFunc(fields, func(f field) bool { return f.key == key.Value })
		switch {
		case at < 0:
			d.unknownField(key, path, known)
		case fields[at].omitted != "":
			d.fault(key.Line, path, "%s %s", key.Value, fields[at].omitted)
		default:
			inner := join(path, key.Value)
			d.places[inner] = place{line: key.Line}
			d.decode(value, v.FieldByIndex(fields[at].index), inner)
		}
	})
}

func (d *decoder) decodeMap(n *yaml.Node, v reflect.Value, path string) {
	v.Set(reflect.MakeMap(v.Type()))
	d.eachEntry(n, path, func(key, value *yaml.Node) {
		if key.Value == "" || len(key.Value) > maxName || strings.ContainsFunc(key.Value, unicode.IsControl) {
			d.fault(key.Line, path, "the name %.60q must have 1 to %d bytes and no control characters", key.Value, maxName)
			return
		}
		inner := join(path, quotedKey(key.Value))
		d.places[inner] = place{line: key.Line}
		item := reflect.New(v.Type().Elem()).Elem()
		d.decode(value, item, inner)
		v.SetMapIndex(reflect.ValueOf(key.Value).Convert(v.Type().Key()), item)
	})
}

// maxName is the length of the longest name of an object, in bytes.
const maxName = 200

// eachEntry calls fn for the entries of an object. It finds keys that are not text or are repeated.
func (d *decoder) eachEntry(n *yaml.Node, path string, fn func(key, value *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		d.faultAt(n, path, "must be names with values")
		return
	}
	seen := map[string]int{}
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		line, twice := seen[key.Value]
		switch {
		case key.Kind != yaml.ScalarNode:
			d.fault(key.Line, path, "has a key that is not a text")
		case key.Tag == "!!merge":
			d.fault(key.Line, path, "has a merge key <<, which is not supported")
		case twice:
			d.fault(key.Line, path, "%.60s is there twice, first in line %d", quotedKey(key.Value), line)
		default:
			seen[key.Value] = key.Line
			fn(key, value)
		}
	}
}

// decodeSlice sets v to a list. A single value is a list of one.
func (d *decoder) decodeSlice(n *yaml.Node, v reflect.Value, path string) {
	switch {
	case n.Kind == yaml.ScalarNode && !isNull(n) && isTextType(v.Type().Elem()):
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		d.decode(n, v.Index(0), path)
		return
	case n.Kind != yaml.SequenceNode:
		d.faultAt(n, path, "must be a list")
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, item := range n.Content {
		d.decode(item, v.Index(i), fmt.Sprintf("%s[%d]", path, i))
	}
}

// faultAt adds a fault of the value at path, as a fault of the object to which the value belongs.
func (d *decoder) faultAt(n *yaml.Node, path, format string, args ...any) {
	d.markBad(path)
	object, name := splitPath(path)
	if name == "" {
		name = "the file"
	}
	d.fault(n.Line, object, "%s %s", name, fmt.Sprintf(format, args...))
}

// markBad notes that the value at path is bad, and that the list that contains the value is bad
// too.
func (d *decoder) markBad(path string) {
	p := d.places[path]
	p.bad = true
	d.places[path] = p
	if list, isItem := strings.CutSuffix(path, "]"); isItem {
		d.markBad(list[:strings.LastIndexByte(list, '[')])
	}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// splitPath cuts the last name, or name with an index, off a path.
func splitPath(path string) (object, name string) {
	at := strings.LastIndexByte(path, '.')
	if quoted := strings.LastIndexByte(path, '"'); quoted > at {
		// The last name is quoted, and may contain points.
		if begin := strings.LastIndex(path[:quoted], `."`); begin >= 0 {
			at = begin
		}
	}
	if at < 0 {
		return "", path
	}
	return path[:at], path[at+1:]
}

// quotedKey returns a key for a path: in quotes, unless it has only letters, digits, _ and -.
func quotedKey(key string) string {
	plain := func(r rune) bool {
		return r == '_' || r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
	}
	if key != "" && !strings.ContainsFunc(key, func(r rune) bool { return !plain(r) }) {
		return key
	}
	return strconv.Quote(key)
}
