// Package schema tests the JSON Schema of package weirconfig with a validator.
package schema_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"

	"github.com/weir-go/weir/weirconfig"
)

const root = "../../.."

// compileSchema returns the schema, which is checked against that of JSON Schema itself.
func compileSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	schema, err := jsonschema.NewCompiler().Compile(filepath.Join(root, "weirconfig", "schema.json"))
	require.NoError(t, err)
	return schema
}

// parseYAML returns what an editor reads from a file.
func parseYAML(t *testing.T, text string) any {
	t.Helper()
	var v any
	require.NoError(t, yaml.Unmarshal([]byte(text), &v))
	return v
}

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// exampleFiles returns the files of the repository that weirconfig reads.
func exampleFiles(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, pattern := range []string{"weirconfig/testdata/*.yaml", "examples/*/weir.yaml"} {
		names, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		require.NoError(t, err)
		for _, name := range names {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			texts[name] = string(text)
		}
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "configuration.md"))
	require.NoError(t, err)
	for _, block := range yamlBlock.FindAllStringSubmatch(string(page), -1) {
		texts[block[1]] = block[1]
	}
	return texts
}

func TestExamplesAreValid(t *testing.T) {
	t.Setenv("SLACK_TOKEN", "hunter2")
	schema := compileSchema(t)
	texts := exampleFiles(t)
	require.GreaterOrEqual(t, len(texts), 2)
	for name, text := range texts {
		require.NoError(t, schema.Validate(parseYAML(t, text)), name)
		_, err := weirconfig.Parse("weir.yaml", []byte(text))
		require.NoError(t, err, name)
	}
}

func TestTheSchemaAcceptsEveryFormOfAValue(t *testing.T) {
	t.Setenv("N", "5")
	schema := compileSchema(t)
	for _, text := range []string{
		`gates: {}`, `gates:`, `gates: {a: }`, `{"$schema": "x", gates: {a: {breaker: }}}`,
		`gates: {a: {rate: 10/1m, burst: off, max_wait: 0}}`,
		`gates: {a: {rate: unlimited, max_concurrent: 5, adaptive: true, max_wait: 1h1m1.5s}}`,
		`gates: {a: {rate: "${N}/s", burst: "${N}"}}`,
		`gates: {a: {breaker: {failure_rate: off, slow_call: 250ms, slow_rate: 12.5%, force: shadow, min_calls: 0}}}`,
		`gates: {a: {breaker: {failure_rate: 0.25, cooldown: off, cooldown_jitter: 1}}}`,
		`groups: {a: {max_keys: 4, max_series: off}}`,
		`limits: {a: {policies: [{name: x, limit: 1, window: 1h, by: [ip, "header:X"], share_new: true}]}}`,
		`sinks: {a: {kind: webhook, url: "http://localhost", header: {A: b, C: d}, repeat: off}}`,
		`{gates: {a: }, rules: [{name: x, of: a, value: tripped, no_data: fire, labels: {b: c}}]}`,
		`{gates: {a: {breaker: {latency: true}}}, rules: [{name: x, of: a, value: quantile, quantile: 99%, span: 5m, when: above 250ms}]}`,
	} {
		_, err := weirconfig.Parse("weir.yaml", []byte(text))
		require.NoError(t, err, text)
		require.NoError(t, schema.Validate(parseYAML(t, text)), text)
	}
}

func TestTheSchemaRefusesFaults(t *testing.T) {
	schema := compileSchema(t)
	for _, text := range []string{
		`- 1`, `gats: {}`, `gates: 5`, `gates: {a: {brust: 5}}`, `gates: {a: {breaker: {on_change: x}}}`,
		`gates: {a: {rate: 5}}`, `gates: {a: {rate: fast}}`, `gates: {a: {max_wait: 5}}`, `gates: {a: {max_wait: 5 s}}`, `gates: {a: {max_wait: off}}`,
		`gates: {a: {max_concurrent: 1000001}}`, `gates: {a: {max_concurrent: -5}}`, `gates: {a: {max_concurrent: off}}`,
		`gates: {a: {breaker: {failure_rate: 2}}}`, `gates: {a: {breaker: {failure_rate: half}}}`, `gates: {a: {breaker: {force: half_open}}}`,
		`gates: {a: {breaker: {probes: 2.5}}}`, `gates: {a: {breaker: {latency: maybe}}}`, `gates: {"": {}}`,
		`limits: {a: {policies: [{rate: 1/s, by: ip}]}}`, `limits: {a: {policies: [{name: x, rate: 1/s}]}}`,
		`limits: {a: {policies: [{name: x, rate: 1/s, by: cookie}]}}`, `limits: {a: {proxies: {trusted: [ten]}}}`,
		`sinks: {a: {url: "http://localhost"}}`, `sinks: {a: {kind: pigeon}}`,
		`{gates: {a: }, rules: [{of: a, value: tripped}]}`, `{gates: {a: }, rules: [{name: x, of: a, value: tripped, when: over 5}]}`,
	} {
		_, err := weirconfig.Parse("weir.yaml", []byte(text))
		require.Error(t, err, text)
		require.Error(t, schema.Validate(parseYAML(t, text)), text)
	}
}
