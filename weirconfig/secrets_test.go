package weirconfig_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/weirconfig"
)

func TestReferencesAreReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "burst")
	require.NoError(t, os.WriteFile(path, []byte("7\n"), 0o600))
	t.Setenv("RATE", "5")
	file, err := weirconfig.Parse("w.yaml", []byte(`gates: {a: {rate: "${RATE}/s", burst: "${file:`+path+`}", max_wait: 1s}}`))
	require.NoError(t, err)
	set, err := weirconfig.New(file, weirconfig.Config{})
	require.NoError(t, err)
	allowed := 0
	for set.Gate("a").Limiter().Take(1).OK {
		allowed++
	}
	require.Equal(t, 7, allowed)
}

func TestFaultsOfReferences(t *testing.T) {
	dir := t.TempDir()
	empty, large := filepath.Join(dir, "empty"), filepath.Join(dir, "large")
	require.NoError(t, os.WriteFile(empty, []byte("\n"), 0o600))
	require.NoError(t, os.WriteFile(large, bytes.Repeat([]byte("x"), 64<<10+1), 0o600))
	t.Setenv("EMPTY", "")
	t.Setenv("NUMBER", "-2")
	t.Setenv("MINUS", "-1")
	for value, want := range map[string]string{
		"${WEIR_UNSET}":         "burst refers to ${WEIR_UNSET}, which is not set or empty",
		"${EMPTY}":              "burst refers to ${EMPTY}, which is not set or empty",
		"${file:x}":             "burst refers to ${file:x}, whose path must be absolute",
		"${file:" + dir + "}":   "burst refers to ${file:" + dir + "}, which cannot be read: read " + dir + ": is a directory",
		"${file:" + empty + "}": "burst refers to ${file:" + empty + "}, which is empty or is not text in UTF-8",
		"${file:" + large + "}": "burst refers to ${file:" + large + "}, which cannot be read: " + large + " has more than 65536 bytes",
		"${a-b}":                "burst has the reference \"${a-b}\", must be like ${NAME} or ${file:/path}, or $${ for a plain ${",
		"${NUMBER":              "burst has the reference \"${NUMBER\", must be like ${NAME} or ${file:/path}, or $${ for a plain ${",
		"$${NUMBER}":            "burst is \"${NUMBER}\", must be a whole number",
		"${MINUS}":              "burst is a value from ${MINUS} that is not shown, must be a whole number",
		"${NUMBER}":             "burst is invalid; the reason is not shown, because the object has values from ${NUMBER}",
	} {
		require.Equal(t, []string{"w.yaml:1: gates.a: " + want}, faults(t, `gates: {a: {rate: 5/s, burst: "`+value+`"}}`), value)
	}
	require.Equal(t, []string{"w.yaml:1: rules[0]: name has a reference, which a name cannot have because it is shown"},
		faults(t, `{gates: {a: }, rules: [{name: "x${NUMBER}", of: a, value: tripped}]}`))
}

// secretFiles are files, valid and invalid, that refer to ${SECRET} in every place.
var secretFiles = []string{
	`gates: {a: {rate: "${SECRET}"}}`,
	`gates: {a: {max_wait: "${SECRET}"}}`,
	`gates: {a: {rate: "${SECRET}/s", burst: 9999999999999999}}`,
	`gates: {a: {breaker: {probes: "${SECRET}"}}}`,
	`gates: {a: {breaker: {cooldown: "${SECRET}s", max_cooldown: 1ms}}}`,
	`gates: {a: {breaker: {latency: "${SECRET}"}}}`,
	`gates: {a: {breaker: {force: "${SECRET}"}}}`,
	`{gates: {a: {}}, rules: [{name: x, of: "${SECRET}", value: tripped}]}`,
	`{gates: {a: {}}, rules: [{name: x, of: a, value: "${SECRET}"}]}`,
	`{gates: {a: {}}, rules: [{name: x, of: a, value: tripped, when: "${SECRET}"}]}`,
	`{gates: {a: {}}, rules: [{name: x, of: a, value: tripped, severity: "${SECRET}", for: -1s}]}`,
	`{gates: {a: {}}, rules: [{name: x, of: a, value: tripped, labels: {a: "${SECRET}", key: x}}]}`,
	`monitor: {instance: "${SECRET}", interval: -1s}`,
	`limits: {a: {policies: [{name: x, by: "${SECRET}"}]}}`,
	`limits: {a: {proxies: {trusted: ["${SECRET}"], header: "${SECRET} x"}}}`,
	`limits: {a: {policies: [{name: x, by: ip, limit: "${SECRET}"}]}}`,
	`sinks: {a: {kind: "${SECRET}"}}`,
	`sinks: {a: {kind: slack, url: "${SECRET}"}}`,
	`sinks: {a: {kind: webhook, url: "http://x/${SECRET}", key: "${SECRET}"}}`,
	`sinks: {a: {kind: slack, url: "http://x/${SECRET}", header: {A: "${SECRET}"}, repeat: -5s}}`,
	`sinks: {a: {kind: log, url: "${SECRET}"}}`,
	`sinks: {a: {kind: pagerduty, key: "${SECRET}"}}`,
	`sinks: {a: {kind: mail, server: "${SECRET}", user: "${SECRET}", from: "${SECRET}", to: "${SECRET}", no_tls: true}}`,
	`sinks: {a: {kind: mail, server: "x:25", from: "${SECRET} <a@b.c>", to: ["${SECRET}@b.c"], password: "${SECRET}"}}`,
	`sinks: {a: {kind: webhook, url: "http://x", template: "{{${SECRET}}}"}}`,
	`sinks: {a: {kind: webhook, url: "http://x", template: "${SECRET}x"}}`,
	`sinks: {a: {kind: slack, url: "http://x/${SECRET}", header: {A: ["${SECRET}"]}}}`,
	// the following are valid
	`sinks: {a: {kind: mail, server: "x:25", from: a@b.c, to: "${SECRET}@b.c", user: "${SECRET}", password: "${SECRET}"}}`,
	`sinks: {a: {kind: pagerduty, key: "0123456789abcdef0123456789abcdef", header: {A: "${SECRET}"}}}`,
	`sinks: {a: {kind: webhook, url: "http://x", template: '{"key": "${SECRET}"}'}}`,
	`{sinks: {a: {kind: slack, url: "http://x/${SECRET}", header: {A: "${SECRET}"}}}}`,
	`{gates: {a: }, rules: [{name: x, of: a, value: tripped, labels: {a: "${SECRET}"}}]}`,
}

func TestSecretsAppearNowhere(t *testing.T) {
	for _, secret := range []string{"hunter2", "918273645", "-918273645"} {
		t.Setenv("SECRET", secret)
		valid := 0
		for _, text := range secretFiles {
			file, err := weirconfig.Parse("w.yaml", []byte(text))
			if err != nil {
				require.NotContains(t, err.Error(), "unter2", text)
				require.NotContains(t, err.Error(), "18273645", text)
				require.Contains(t, err.Error(), "w.yaml:1: ", text)
				continue
			}
			valid++
			set, err := weirconfig.New(file, weirconfig.Config{})
			require.NoError(t, err)
			requireNotShown(t, file, secret[1:])
			requireNotShown(t, set, secret[1:])
			requireNotShown(t, *file, secret[1:])
			requireNotShown(t, *set, secret[1:])
			requireNotShown(t, struct{ file weirconfig.File }{*file}, secret[1:])
		}
		require.GreaterOrEqual(t, valid, 5)
	}
}

// requireNotShown prints, logs and marshals a value in every way, alone and within other values.
func requireNotShown(t *testing.T, value any, secret string) {
	t.Helper()
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "value", value)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "value", value)
	text := log.String()
	for _, shown := range []any{value, []any{value}, struct{ Value any }{value}, struct{ value any }{value}, map[string]any{"a": value}} {
		marshaled, err := json.Marshal(shown)
		require.NoError(t, err)
		text += string(marshaled)
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			text += fmt.Sprintf(verb, shown)
		}
	}
	require.NotContains(t, text, secret)
	require.NotContains(t, text, fmt.Sprintf("%x", secret))
}
