package weirconfig

import (
	"reflect"
	"strings"
	"unicode"
)

// field is a field of a struct as it appears in a file.
type field struct {
	reflect.StructField
	key     string // the Go name in snake case
	index   []int
	omitted string // why a file cannot have it, or ""
}

// omitted lists the fields that a file cannot have, by type and name, with the reasons. A file
// cannot have functions and interfaces either.
var omitted = map[string]string{
	"notify.Config.Name":  "is not a field, because the key of the sink is its name",
	"alert.Config.Logger": "is not a field, because a program sets it",
	"alert.Config.Notify": "is not a field, because a monitor tells all sinks",

	"weirhttp.Policy.Quota": "is not data: a program sets it, see Config",
}

// fieldsOf returns the exported fields of a struct and of the structs that it embeds, in their
// order.
func fieldsOf(t reflect.Type) (fields []field) {
	for _, f := range reflect.VisibleFields(t) {
		if f.Anonymous || !f.IsExported() {
			continue
		}
		owner := t
		if len(f.Index) > 1 {
			owner = t.FieldByIndex(f.Index[:len(f.Index)-1]).Type
		}
		why := omitted[owner.String()+"."+f.Name]
		if why == "" && (f.Type.Kind() == reflect.Func || f.Type.Kind() == reflect.Interface) {
			why = "is not data: a program sets it, see Config"
		}
		fields = append(fields, field{f, snakeCase(f.Name), f.Index, why})
	}
	return fields
}

// snakeCase returns the Go name of a field as a key: failure_rate for FailureRate, url for URL.
func snakeCase(name string) string {
	var b strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		if i > 0 && unicode.IsUpper(r) && (unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
