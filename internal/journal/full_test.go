//go:build linux

package journal_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/journal"
)

// TestMain runs the program of TestFullDiskLosesNothing if the environment variable
// WEIR_JOURNAL is set.
func TestMain(m *testing.M) {
	if path := os.Getenv("WEIR_JOURNAL"); path != "" {
		os.Exit(runFull(path))
	}
	os.Exit(m.Run())
}

// runFull commits until a commit fails, and returns the exit code 3 then.
func runFull(path string) int {
	j, _, err := journal.Open(path, format)
	if err != nil {
		return 1
	}
	for i := range 100 {
		if j.Set("key", strings.Repeat("x", 100+i)) != nil {
			return 1
		}
		if j.Commit() != nil {
			return 3
		}
	}
	return 0
}

// A limit of the shell stands for a full disk: the last append writes a part of its record.
func TestFullDiskLosesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	c := exec.CommandContext(t.Context(), "sh", "-c", `trap '' XFSZ; ulimit -f 4; exec "$0"`, os.Args[0])
	c.Env = append(os.Environ(), "WEIR_JOURNAL="+path)
	out, err := c.CombinedOutput()
	require.ErrorContains(t, err, "exit status 3", string(out))
	j, damaged := opened(t, path)
	require.Equal(t, 1, damaged)
	require.Len(t, contentOf(j), 1)
	require.NoError(t, j.Set("key", 1))
	require.NoError(t, j.Commit())
	require.NoError(t, j.Close())
	content, damaged := reopened(t, path)
	require.Equal(t, map[string]string{"key": "1"}, content)
	require.Zero(t, damaged)
}
