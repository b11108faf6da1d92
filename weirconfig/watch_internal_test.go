package weirconfig

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each signal logs a message, and the looks before and after it do not log this message again.
func TestASignalLogsABadFileOnceMore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "w.yaml")
	write := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
	write(`gates: {a: {}}`)
	file, err := Load(path)
	require.NoError(t, err)
	var log bytes.Buffer
	set, err := New(file, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	w := fileWatch{set: set, path: path, done: file.read}
	for _, c := range []struct{ text, message string }{
		{`gates: {a: {rate: none}}`, "the file was not applied"},
		{`gates: {a: {}, b: {}}`, "the file was applied"},
		{"", "the file cannot be read"},
	} {
		log.Reset()
		if write(c.text); c.text == "" {
			require.NoError(t, os.Remove(path))
		}
		for n, step := range []struct {
			do     func()
			logged int
		}{
			{w.applyNow, 1},
			{w.applyIfStable, 1},
			{w.applyIfStable, 1},
			{w.applyIfStable, 1},
			{w.applyNow, 2},
			{w.applyIfStable, 2},
			{w.applyIfStable, 2},
		} {
			step.do()
			require.Equal(t, step.logged, strings.Count(log.String(), c.message), "%s: step %d", c.message, n)
		}
	}
}
