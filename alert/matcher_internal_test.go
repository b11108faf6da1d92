package alert

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMatchers(t *testing.T) {
	for _, c := range []struct {
		text  string
		value string
		want  bool
	}{
		{`a=b`, "b", true},
		{`a=b`, "bb", false},
		{` a = b `, "b", true},
		{`a="b"`, "b", true},
		{`a=" b "`, " b ", true},
		{`a=""`, "", true},
		{`a="x\"y\n"`, "x\"y\n", true},
		{`a=b c`, "b c", true},
		{`a==b`, "=b", true},
		{`a!=b`, "b", false},
		{`a!=b`, "", true},
		{`a!=b`, "c", true},
		{`a=~b|c`, "c", true},
		{`a=~b|c`, "bc", false}, // the whole value, as in Alertmanager
		{`a=~"b.*"`, "b\nc", true},
		{`a=~"db-[0-9]+"`, "db-12", true},
		{`a=~"db-[0-9]+"`, "db-12x", false},
		{`a!~"db-.*"`, "db-1", false},
		{`a!~"db-.*"`, "web", true},
		{`a=~"(?i)X"`, "x", true},
		{`a=~".*"`, "", true},
		{`a=~".+"`, "", false},
		{`größe=x`, "", false},
	} {
		m, err := parseMatcher(c.text)
		if c.text == `größe=x` {
			require.Error(t, err)
			continue
		}
		require.NoError(t, err, c.text)
		require.Equal(t, "a", m.label, c.text)
		require.Equal(t, c.want, m.matches(c.value), "%s of %q", c.text, c.value)
	}
	for _, text := range []string{"", "=b", "a", "a=", "a!b", "a~b", `a="b`, `a=b"`, `a="b"c"`, `1a=b`, `a=~"["`, `a=~"b)|(c"`, `a=~"x{1000}x{1000}x{1000}x{1000}x{1000}"`, "a=~\"" + strings.Repeat("x{9}", 490) + "\"", "a=\xff", `a=b"c`} {
		_, err := parseMatcher(text)
		require.Error(t, err, text)
	}
	for _, text := range []string{strings.Repeat("x|", 995), strings.Repeat("(x", 400) + strings.Repeat(")", 400), strings.Repeat(".*", 990)} {
		_, err := parseMatcher("a=~" + text + "x")
		require.NoError(t, err, "an expression of the greatest length")
	}
}
