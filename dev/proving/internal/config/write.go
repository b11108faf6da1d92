package config

import (
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/weir-go/weir/dev/proving/internal/sim"
)

// Write writes a file that Read reads. The guards are lines of YAML, such as "{name: a, rate:
// 10/s}", and beside are the names of libraries.
func Write(out io.Writer, title string, w sim.World, seeds, seed uint64, guards, beside []string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "title: %s\n", strconv.Quote(title))
	fmt.Fprintf(&b, "service: %s\nload:\n", fields(reflect.ValueOf(w.Service)))
	for _, c := range w.Clients {
		fmt.Fprintf(&b, "  - %s\n", fields(reflect.ValueOf(c)))
	}
	if len(w.Faults) > 0 {
		b.WriteString("faults:\n")
	}
	for _, f := range w.Faults {
		fmt.Fprintf(&b, "  - %s\n", fields(reflect.ValueOf(f)))
	}
	fmt.Fprintf(&b, "for: %v\nwarmup: %v\n", w.For, w.Warmup)
	if w.Trouble != (sim.Span{}) {
		fmt.Fprintf(&b, "trouble: %s\n", fields(reflect.ValueOf(w.Trouble)))
	}
	b.WriteString("guards:\n")
	for _, g := range guards {
		fmt.Fprintf(&b, "  - %s\n", g)
	}
	if len(beside) > 0 {
		for i, name := range beside {
			beside[i] = strconv.Quote(name)
		}
		fmt.Fprintf(&b, "beside: [%s]\n", strings.Join(beside, ", "))
	}
	fmt.Fprintf(&b, "seeds: %d\nseed: %d\n", seeds, seed)
	_, err := io.WriteString(out, b.String())
	return err
}

// fields returns a struct in YAML, without the fields that are zero.
func fields(v reflect.Value) string {
	var all []string
	for _, f := range reflect.VisibleFields(v.Type()) {
		value := v.FieldByIndex(f.Index)
		if f.Anonymous || value.IsZero() {
			continue
		}
		text := valueText(value)
		switch f.Name {
		case "Capacity":
			text = strings.ReplaceAll(text, strconv.Itoa(sim.NoCapacity), "0")
		case "Rate":
			text += "/s"
		}
		all = append(all, snake(f.Name)+": "+text)
	}
	return "{" + strings.Join(all, ", ") + "}"
}

func valueText(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case sim.Distribution:
		return x.Text
	case time.Duration:
		return x.String()
	case float64:
		return strconv.FormatFloat(x, 'f', -1, 64)
	}
	if v.Kind() == reflect.Struct {
		return fields(v)
	}
	if v.Kind() != reflect.Slice {
		return fmt.Sprint(v.Interface())
	}
	var all []string
	for i := range v.Len() {
		all = append(all, valueText(v.Index(i)))
	}
	return "[" + strings.Join(all, ", ") + "]"
}
