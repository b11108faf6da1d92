package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/testenv"
)

// shortFlags holds flags that make a command short. Its figures then mean nothing.
var shortFlags = []string{"-rounds=6", "-each=100us", "-allocs=100", "-keys=100", "-upto=100"}

func output(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var b strings.Builder
	err := run(append(args, shortFlags...), &b)
	return b.String(), err
}

func TestCompareWritesTheSelectedRows(t *testing.T) {
	out, err := output(t, "compare", "-only=^floor")
	require.NoError(t, err, "a floor has no bound")
	require.Len(t, strings.Split(strings.TrimSpace(out), "\n"), 1+5*3, out)

	byDefault, err := output(t, "-only=^limiter: uber")
	require.NoError(t, err)
	require.Len(t, strings.Split(strings.TrimSpace(byDefault), "\n"), 1+3, byDefault)

	cores, _ := output(t, "-only=^One object") // so short a run can report any result
	require.Len(t, strings.Split(strings.TrimSpace(cores), "\n"), 1+5, cores)
	require.Contains(t, cores, "GOMAXPROCS [1 2 4 8 16 32 64]")
}

func TestCompareStartsRedisOnlyIfSelected(t *testing.T) {
	testenv.Program(t, "redis-server")
	out, err := output(t, "compare", "-only=^fleet: throttled")
	require.NoError(t, err, "a row without a bound fails for no ratio")
	require.Regexp(t, `(?m)^fleet: throttled +serial +[0-9]+ +[0-9]+ .*\n.* 8 goroutines.*\n.* 64 goroutines`, out)

	t.Setenv("PATH", t.TempDir())
	_, err = output(t, "compare", "-only=^floor: sync.Mutex")
	require.NoError(t, err, "this row needs no Redis")
	out, err = output(t, "compare", "-only=^fleet|^floor: sync.Mutex")
	require.ErrorContains(t, err, "make deps")
	require.Contains(t, out, "floor: sync.Mutex", "the other rows are written")
}

func TestGuardWritesEveryMainRow(t *testing.T) {
	out, _ := output(t, "guard") // so short a run can report any result
	require.Len(t, strings.Split(strings.TrimSpace(out), "\n"), 12, out)
}

func TestResultsWritesEverything(t *testing.T) {
	testenv.Program(t, "redis-server")
	dir := t.TempDir()
	_, err := output(t, "results", "-dir="+dir)
	if err != nil {
		require.Regexp(t, "missed", err.Error(), "a verdict, not a failure")
	}
	text, err := os.ReadFile(filepath.Join(dir, "RESULTS.md"))
	require.NoError(t, err)
	for _, heading := range []string{"## Calls", "## Bytes", "## Programs", "## Many keys and many cores", "## Decisions on Redis", "## Protection and harm", "# Details"} {
		require.Contains(t, string(text), heading)
	}
	pictures, err := filepath.Glob(filepath.Join(dir, "results", "*.svg"))
	require.NoError(t, err)
	require.Len(t, pictures, 4)
	for _, picture := range pictures {
		require.Contains(t, string(text), "(results/"+filepath.Base(picture)+")")
	}
}

func TestInvalidArgumentsAreErrors(t *testing.T) {
	_, err := output(t, "faster")
	require.EqualError(t, err, `unknown command "faster": use compare, quick, guard or results`)
	_, err = output(t, "quick", "-only=(")
	require.ErrorContains(t, err, "missing closing )")
	for _, flag := range []string{"-rounds=0", "-allocs=-1"} {
		require.ErrorContains(t, run([]string{"quick", flag}, io.Discard), "want at least 1 of each")
	}
}
