package weirconfig

import (
	"cmp"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirhttp"
)

const pagePath = "../docs/configuration.md"

// docs/configuration.md is written by the command
//
//	go test -C weirconfig . -run TestConfigurationPage -update
func TestConfigurationPageIsUpToDate(t *testing.T) {
	beginning, err := os.ReadFile("testdata/configuration.md")
	require.NoError(t, err)
	example, err := os.ReadFile("testdata/weir.yaml")
	require.NoError(t, err)
	want := strings.Replace(string(beginning), "EXAMPLE\n", "```yaml\n"+string(example)+"```\n", 1)
	want = strings.Replace(want, "EFFECTS\n", effectsTable(), 1) + tables(t)
	if *update {
		require.NoError(t, os.WriteFile(pagePath, []byte(want), 0o644))
	}
	got, err := os.ReadFile(pagePath)
	require.NoError(t, err)
	require.Equal(t, want, string(got), "run the test with -update")
}

// sections are the structs of the page with their titles.
var sections = []struct {
	title string
	typ   reflect.Type
}{
	{"The file", reflect.TypeFor[document]()},
	{"A gate", reflect.TypeFor[weir.Config]()},
	{"A breaker", reflect.TypeFor[breaker.Config]()},
	{"A group", reflect.TypeFor[weir.GroupConfig]()},
	{"A limit", reflect.TypeFor[limit]()},
	{"The proxies of a limit", reflect.TypeFor[weirhttp.Proxies]()},
	{"A policy", reflect.TypeFor[policy]()},
	{"The monitor", reflect.TypeFor[alert.Config]()},
	{"A rule", reflect.TypeFor[rule]()},
	{"A sink", reflect.TypeFor[sink]()},
}

// tables returns a table of the fields of each struct.
func tables(t *testing.T) string {
	var b strings.Builder
	c := comments{}
	for _, s := range sections {
		fmt.Fprintf(&b, "\n### %s\n\n| field | value | default | meaning |\n|---|---|---|---|\n", s.title)
		for _, p := range properties(t, c, s.typ) {
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", p.key, escapeCell(p.form()), escapeCell(p.shownDefault()), escapeCell(p.meaning()))
		}
	}
	return b.String()
}

// effectsTable returns the table of the changes that are not simply in effect for the next call.
func effectsTable() string {
	var b strings.Builder
	b.WriteString("| field | change |\n|---|---|\n")
	for _, key := range newWindowFields {
		fmt.Fprintf(&b, "| `%s` | begins a new window: calls before it are not judged any more |\n", key)
	}
	restart := func(path, meaning string) {
		fmt.Fprintf(&b, "| `%s` | %s |\n", path, strings.TrimSpace(meaning+" needs a restart"))
	}
	for _, f := range fixedGroupFields {
		restart("groups.NAME."+f.key, f.meaning)
	}
	for _, f := range fixedMonitorFields {
		restart("monitor."+f.key, f.meaning)
	}
	return b.String()
}

func escapeCell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// meaning returns the beginning of the comment.
func (p property) meaning() string {
	text, _, _ := strings.Cut(p.doc, ". ")
	text = strings.TrimSuffix(strings.TrimPrefix(text, p.key+" "), ".")
	for _, verb := range []string{"is ", "are "} {
		text = strings.TrimPrefix(text, verb)
	}
	return text
}

// form returns the form of the value and its bounds.
func (p property) form() string {
	v := reflect.New(p.typ).Elem()
	text := form(v)
	switch {
	case len(p.words) > 0:
		text = joinWords(p.words)
	case p.typ == durationType:
		text = "a duration"
	case p.typ == reflect.TypeFor[limiter.Rate]():
		text = "a rate"
	case p.typ == reflect.TypeFor[condition]():
		text = "a condition"
	case isText(v) || v.Kind() == reflect.String:
	case v.Kind() == reflect.Slice:
		return "a list"
	case v.Kind() == reflect.Map, v.Kind() == reflect.Struct:
		return "an object"
	case v.CanFloat():
		text = "a number"
	}
	switch {
	case strings.HasPrefix(p.low, "above"):
		text += " " + p.low
	case p.low != "" && p.high != "":
		text += " from " + p.low + " to " + strings.TrimSuffix(p.high, "0m0s")
	case p.low != "" && p.low != "0":
		text += " of at least " + p.low
	}
	if p.off {
		text += ", or off"
	}
	return text
}

// shownDefault returns the default, or "required" if there must be a value.
func (p property) shownDefault() string {
	if p.required {
		return "required"
	}
	text, _, _ := strings.Cut(p.defaultText, ". ")
	if value, ok := p.defaultValue(); ok && len(p.words) > 0 {
		return fmt.Sprint(value)
	}
	return cmp.Or(text, "–")
}
