//go:build unix

package weirconfig

import (
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A pipe in place of the file, or of a secret, does not block Watch.
func TestWatchDoesNotReadAPipe(t *testing.T) {
	dir := t.TempDir()
	path, pipe := filepath.Join(dir, "w.yaml"), filepath.Join(dir, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	require.NoError(t, os.WriteFile(path, []byte(`gates: {a: {}}`), 0o600))
	file, err := Load(path)
	require.NoError(t, err)
	set, err := New(file, Config{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	other := filepath.Join(dir, "other.yaml")
	require.NoError(t, os.WriteFile(other, []byte(`gates: {a: {breaker: {force: forced_open, force_reason: "${file:`+pipe+`}"}}}`), 0o600))
	for _, path := range []string{other, pipe} {
		w, done := fileWatch{set: set, path: path, done: file.read}, make(chan struct{})
		go func() {
			defer close(done)
			w.applyNow()
			w.applyIfStable()
		}()
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			t.Fatal("a pipe blocks the reading of " + path)
		}
		require.Contains(t, set.Notice(), "is not a regular file", path)
	}
}
