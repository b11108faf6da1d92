package weirconfig_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"

	"github.com/weir-go/weir/weirconfig"
)

// Either a file is refused with an error that names the file, or its objects can be made. In the
// second case the file is also valid if it is written in JSON.
func FuzzParse(f *testing.F) {
	example, err := os.ReadFile("testdata/weir.yaml")
	require.NoError(f, err)
	f.Add(string(example))
	for _, text := range secretFiles {
		f.Add(text)
	}
	for _, text := range []string{
		"", "a", "- b", "gates:\n  ? [a]\n  : b", "gates: {\"a.b\": {rate: 1e-9/s, burst: off}}", "rules: [[[[[[]]]]]]", "\xff\xfe\x00", "gates: {a: {breaker: {window: 1ns}}}",
		`{gates: {"x\u0000": }, groups: {".\"": {gate: {breaker: {slow_call: 9223372036854775807ns, latency: true}}}}}`,
		`{gates: {a: }, rules: [{name: x, of: a, value: rate, when: above 1e308, span: 1ns, short_span: 1ms}]}`,
	} {
		f.Add(text)
	}
	f.Setenv("SECRET", "hunter2")
	f.Setenv("SLACK_TOKEN", "hunter2")
	f.Fuzz(func(t *testing.T, text string) {
		file, err := weirconfig.Parse("w.yaml", []byte(text))
		if err != nil {
			require.NotContains(t, err.Error(), "hunter2")
			for line := range strings.SplitSeq(err.Error(), "\n") {
				require.Regexp(t, `^w\.yaml:([0-9]+:)? .`, line)
			}
			return
		}
		_, err = weirconfig.New(file, weirconfig.Config{})
		require.NoError(t, err)
		var value any
		if yaml.Unmarshal([]byte(text), &value) != nil {
			// the library cannot convert some texts to values, such as a date that does not exist
			return
		}
		again, err := json.Marshal(value)
		if err != nil {
			return // JSON has no NaN
		}
		_, err = weirconfig.Parse("w.json", again)
		require.NoError(t, err, "as JSON: %s", again)
	})
}
