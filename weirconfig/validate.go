package weirconfig

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/limiter"
)

// validate finds the values that are out of bounds. The bounds are those of Config.Validate in each
// package.
func (d *decoder) validate(doc *document) {
	for _, name := range slices.Sorted(maps.Keys(doc.Gates)) {
		d.check("gates."+quotedKey(name), reflect.ValueOf(doc.Gates[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(doc.Groups)) {
		d.check("groups."+quotedKey(name), reflect.ValueOf(doc.Groups[name]))
	}
	d.checkLimits(doc)
	d.checkSinks(doc)
	d.checkRules(doc)
	d.checkNames(doc)
}

// checkNames finds names that the metrics of two breakers or of two limiters would have.
func (d *decoder) checkNames(doc *document) {
	breakers, limiters := map[string]string{}, map[string]string{} // paths by name
	gate := func(path, name string, c weir.Config) {
		d.claimName(breakers, path, name)
		if c.Rate != (limiter.Rate{}) || c.MaxConcurrent > 0 || c.Adaptive {
			d.claimName(limiters, path, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(doc.Gates)) {
		gate("gates."+quotedKey(name), name, doc.Gates[name])
	}
	for _, name := range slices.Sorted(maps.Keys(doc.Groups)) {
		gate("groups."+quotedKey(name), name, doc.Groups[name].Gate)
	}
	for _, name := range slices.Sorted(maps.Keys(doc.Sinks)) {
		if doc.Sinks[name].Kind != logSink {
			d.claimName(breakers, "sinks."+quotedKey(name), name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(doc.Limits)) {
		for i, p := range doc.Limits[name].Policies {
			if p.Name != "" {
				d.claimName(limiters, fmt.Sprintf("limits.%s.policies[%d]", quotedKey(name), i), p.Name)
			}
		}
	}
}

// claimName adds a fault to the later of two objects with the same name.
func (d *decoder) claimName(owners map[string]string, path, name string) {
	first, taken := owners[name]
	if !taken {
		owners[name] = path
		return
	}
	line := func(path string) int { return cmp.Or(d.places[join(path, "name")].line, d.places[path].line) }
	if line(path) < line(first) {
		first, path = path, first
	}
	if !d.hasFaultOf(path, "name") {
		d.fault(line(path), path, "name is that of %s in line %d too: give it another name", first, line(first))
	}
}

// validator is a Config.
type validator interface{ Validate() error }

// check validates a config. It validates the configs within this config separately, so that each
// fault is known to belong to a field of one struct.
func (d *decoder) check(path string, v reflect.Value) {
	outer := reflect.New(v.Type()).Elem()
	outer.Set(v)
	for _, f := range fieldsOf(v.Type()) {
		inner := outer.FieldByIndex(f.index)
		if _, ok := reflect.TypeAssert[validator](inner); ok && inner.Kind() == reflect.Struct && !isText(inner) {
			d.check(join(path, f.key), inner)
			inner.SetZero()
		}
	}
	if config, ok := reflect.TypeAssert[validator](outer); ok {
		d.addInvalid(path, v.Type(), config.Validate(), "")
	}
}

// isFaulty reports whether the object has a fault already.
func (d *decoder) isFaulty(path string) bool { return d.faulty[path] }

// hasFaultOf reports whether the field of the object at path has a fault already.
func (d *decoder) hasFaultOf(path, key string) bool {
	return d.faultyKey[join(path, key)] || d.places[join(path, key)].bad
}

// isConsequence reports whether a fault of the object at path mentions a field whose value is not
// known because of another fault.
func (d *decoder) isConsequence(path, text string) bool {
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) }) {
		if d.places[join(path, word)].bad {
			return true
		}
	}
	return false
}

// noteRefs notes that the value at path has references, for the objects around it.
func (d *decoder) noteRefs(path string, refs []string) {
	if len(refs) == 0 {
		return
	}
	// A quoted name may have the same characters as the end of a path. That gives some paths of no
	// object.
	for i, c := range path {
		if c == '.' || c == '[' {
			d.refsIn[path[:i]] = append(d.refsIn[path[:i]], refs...)
		}
	}
}

// refsBelow returns the references in the values of an object.
func (d *decoder) refsBelow(path string) []string {
	refs := slices.Clone(d.refsIn[path])
	slices.Sort(refs)
	return slices.Compact(refs)
}

var (
	packageName = regexp.MustCompile(`^[a-z]+: `)
	goName      = regexp.MustCompile(`\b[A-Z][A-Za-z]*\b`)
)

// addInvalid adds the faults in err, which a Validate has returned for the object at path, of type
// t. Each error begins with the names of packages, then prefix, then in most cases a field, as in
// "breaker: FailureRate is 2, must be …".
func (d *decoder) addInvalid(path string, t reflect.Type, err error, prefix string) {
	if err == nil {
		return
	}
	var faults []fault
	for text := range strings.SplitSeq(err.Error(), "\n") {
		for _, before := range []string{"", prefix, "Window and Buckets: ", "Value: ", "the "} {
			text = strings.TrimPrefix(text, before)
			for packageName.MatchString(text) {
				text = packageName.ReplaceAllString(text, "")
			}
		}
		if text = fileWords(text, t); !d.isConsequence(path, text) {
			faults = append(faults, d.locate(path, text))
		}
	}
	d.add(faults...)
}

// fileWords replaces the names of Go fields in a text by those of the file.
func fileWords(text string, t reflect.Type) string {
	keys := map[string]string{
		"Off": off, "Span": "window", "Trusted": "trusted", "Header": "header",
	}
	for _, f := range fieldsOf(t) {
		keys[f.Name] = f.key
	}
	return goName.ReplaceAllStringFunc(text, func(word string) string { return cmp.Or(keys[word], word) })
}

// locate returns the fault for a text that begins with a field of the object at path. If the file
// does not have the field, the fault is at the line of the object. If a value of the object comes
// from a reference, the fault does not have the text, because the text could show the value.
func (d *decoder) locate(path, text string) fault {
	name, rest, _ := strings.Cut(text, " ")
	key, _, _ := strings.Cut(strings.TrimRight(name, ":"), "[")
	at, known := d.places[join(path, key)]
	if !known {
		at = d.places[path]
	}
	if refs := d.refsBelow(path); len(refs) > 0 {
		subject := "a field"
		if known {
			subject = name
		}
		return fault{at.line, path, subject + " is invalid; the reason is not shown, because the object has values from " + strings.Join(refs, " and ")}
	}
	if known && at.off {
		rest = strings.Replace(strings.Replace(rest, "is -1ns,", "is off,", 1), "is -1,", "is off,", 1)
		text = name + " " + rest
	}
	return fault{at.line, path, text}
}
