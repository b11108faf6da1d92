package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// hurry are flags with which a command is over soon; its figures mean nothing then.
var hurry = []string{"-rounds=6", "-each=100us", "-keys=100", "-upto=100"}

func output(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var b strings.Builder
	err := run(append(args, hurry...), &b)
	return b.String(), err
}

func TestCompareShowsTheRowsThatAreWanted(t *testing.T) {
	out, err := output(t, "compare", "-only=^floor")
	require.NoError(t, err, "floors have no bounds")
	require.Len(t, strings.Split(strings.TrimSpace(out), "\n"), 1+5*3+2*3, out)
	require.Contains(t, out, "floor: atomic add by mutex")

	byDefault, err := output(t, "-only=^floor: atomic add")
	require.NoError(t, err)
	require.Len(t, strings.Split(strings.TrimSpace(byDefault), "\n"), 1+3, byDefault)
}

func TestCompareAsksARedisWhereThatIsWanted(t *testing.T) {
	out, err := output(t, "compare", "-only=^fleet: throttled")
	require.NoError(t, err, "for information")
	require.Regexp(t, `(?m)^fleet: throttled +serial +[0-9]+ +[0-9]+ .*\n.* 8 goroutines.*\n.* 64 goroutines`, out)

	t.Setenv("PATH", t.TempDir())
	_, err = output(t, "compare", "-only=^floor: atomic add")
	require.NoError(t, err, "none is needed")
	out, err = output(t, "compare", "-only=^fleet|^floor: atomic add")
	require.ErrorContains(t, err, "make install")
	require.Contains(t, out, "floor: atomic add", "the rest is shown")
}

func TestGuardShowsEveryCost(t *testing.T) {
	out, _ := output(t, "guard") // which may find anything in such a hurry
	require.Len(t, strings.Split(strings.TrimSpace(out), "\n"), 7, out)
}

func TestResultsWritesEverything(t *testing.T) {
	dir := t.TempDir()
	_, err := output(t, "results", "-dir="+dir)
	if err != nil {
		require.Regexp(t, "missed|otherwise than stated", err.Error(), "a verdict, and no fault")
	}
	text, err := os.ReadFile(filepath.Join(dir, "RESULTS.md"))
	require.NoError(t, err)
	for _, heading := range []string{"## The floor", "## Comparisons with a bound", "## Decisions on a Redis", "## How costs grow", "## Contention", "## Memory"} {
		require.Contains(t, string(text), heading)
	}
	pictures, err := filepath.Glob(filepath.Join(dir, "results", "*.svg"))
	require.NoError(t, err)
	require.Len(t, pictures, 6)
	for _, picture := range pictures {
		require.Contains(t, string(text), "(results/"+filepath.Base(picture)+")")
	}
}

func TestWhatMakesNoSenseIsRefused(t *testing.T) {
	_, err := output(t, "faster")
	require.EqualError(t, err, `no command "faster": there are compare, quick, guard and results`)
	_, err = output(t, "quick", "-only=(")
	require.ErrorContains(t, err, "missing closing )")
}
