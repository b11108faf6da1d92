package weirconfig_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/weirconfig"
)

// Every form of JSON and of YAML that a tool may write is read.
func TestFormsOfJSONAndYAML(t *testing.T) {
	note := func(text string) string {
		return `{"gates":{"a":{}},"rules":[{"name":"r","of":"a","value":"tripped","annotations":{"x":"` + text + `"}}]}`
	}
	for name, text := range map[string]string{
		"surrogate pair":             note(`\ud83d\ude00`),
		"surrogate pair in capitals": note(`\\\uD83D\uDE00\\ud83d`),
		"surrogate pair in a name":   `{"gates":{"\ud83d\ude00":{}}}`,
		"byte order mark":            "\ufeff" + note(`\ud83d\ude00`),
		"exponent":                   `{"gates":{"a":{"max_concurrent":1e2}}}`,
		"point":                      `{"gates":{"a":{"max_concurrent":100.0}}}`,
		"negative exponent":          `{"gates":{"a":{"breaker":{"failure_rate":5E-1}}}}`,
		"directive":                  "%YAML 1.2\n---\ngates: {a: {}}\n",
		"directive after comments":   "# made by a tool\n\n%YAML 1.1 # old\n---\ngates: {a: {}}\n",
		"empty document at the end":  "gates: {a: {}}\n---\n",
		"comment at the end":         "gates: {a: {}}\n---\n# nothing\n",
	} {
		_, err := weirconfig.Parse("w", []byte(text))
		require.NoError(t, err, name)
	}
	for text, want := range map[string]string{
		note(`\ud83d`):                             "invalid Unicode character escape code",
		`{"gates":{"a":{"max_concurrent":1.5}}}`:   `max_concurrent is "1.5", must be a whole number`,
		`{"gates":{"a":{"max_concurrent":1e99}}}`:  `max_concurrent is "1e99", must be a whole number`,
		"gates: {a: {max_concurrent: 100%}}":       `max_concurrent is "100%", must be a whole number`,
		"%YAML 1.2\n---\ngates: {a: {burst: 3}}\n": "w:3: gates.a: burst is 3",
		"gates: {a: {}}\n---\ngates: {}\n":         "begins a second document",
		"gates: {a: {}}\n---\nnull\n":              "begins a second document",
	} {
		_, err := weirconfig.Parse("w", []byte(text))
		require.ErrorContains(t, err, want, text)
	}
}

// A character of two escapes is the same character.
func TestSurrogatePairsAreOneCharacter(t *testing.T) {
	file, err := weirconfig.Parse("w", []byte(`{"gates":{"a":{"breaker":{"force":"forced_open","force_reason":"\ud83d\ude00 \\ud83d"}}}}`))
	require.NoError(t, err)
	set, err := weirconfig.New(file, weirconfig.Config{})
	require.NoError(t, err)
	require.ErrorContains(t, set.Gate("a").Run(t.Context(), succeed), "\U0001f600 \\ud83d")
}

// The forms of numbers and words that the schema accepts.
func TestFormsOfValues(t *testing.T) {
	for _, value := range []string{"16", "0x10", "0o20", "+16", "1.6e1", "16.0", `"16"`, `"0x10"`} {
		file, err := weirconfig.Parse("w", []byte("gates: {a: {rate: 1/h, burst: "+value+"}}"))
		require.NoError(t, err, value)
		set, err := weirconfig.New(file, weirconfig.Config{})
		require.NoError(t, err)
		require.Equal(t, 16, set.Gate("a").Limiter().Take(0).Remaining, value)
	}
	for text, ok := range map[string]bool{
		"latency: True": true, "latency: FALSE": true, "latency: yes": false, "cooldown: +5s": true, "cooldown: 0.0": true, "cooldown: -0s": false,
		"failure_rate: +50%": true, "failure_rate: 0x1": true, `force: ""`: false, "cooldown: 5": false, "min_calls: 0x": false, "min_calls: 0b1": false,
	} {
		_, err := weirconfig.Parse("w", []byte("gates: {a: {breaker: {"+text+"}}}"))
		require.Equal(t, ok, err == nil, "%s: %v", text, err)
	}
}

// A file with many faults takes time in proportion to its size.
func TestTimeOfAFileWithManyFaults(t *testing.T) {
	t.Setenv("WEIR_X", "x")
	parse := func(head, item string, n int) time.Duration {
		var b strings.Builder
		b.WriteString(head)
		for i := range n {
			fmt.Fprintf(&b, item, i)
		}
		began := time.Now()
		_, err := weirconfig.Parse("w", []byte(b.String()))
		require.Error(t, err)
		return time.Since(began)
	}
	for _, c := range []struct{ head, item string }{
		{"gates:\n", " g%d: {burst: 3}\n"},
		{"gates:\n", " g%d: {burst: 3, breaker: {force: forced_open, force_reason: \"${WEIR_X}\"}}\n"},
		{"sinks:\n", " s%d: {kind: slack}\n"},
		{"rules:\n", "- {name: r%d, of: b, value: x}\n"},
	} {
		small, large := parse(c.head, c.item, 500), parse(c.head, c.item, 4000)
		require.Less(t, large, 24*small+100*time.Millisecond, "8 times the size of %q takes %v in place of %v", c.item, large, small)
	}
}
