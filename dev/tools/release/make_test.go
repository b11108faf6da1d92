package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// Make passes V on as one text, whether it is a variable of make or of the environment.
func TestMakeRunsNoPartOfTheVersion(t *testing.T) {
	file := filepath.Join(t.TempDir(), "made")
	for _, version := range []string{
		"", "v0.1.0-rc.1", "v0.1.0 v0.2.0", "-check", "; touch " + file, "'; touch " + file + " #", `"; touch ` + file + " #", "`touch " + file + "`",
	} {
		for _, target := range []string{"release", "release-check"} {
			given := exec.CommandContext(t.Context(), "make", "-C", "../../..", target, "V="+version)
			inherited := exec.CommandContext(t.Context(), "make", "-C", "../../..", target)
			given.Env = append(os.Environ(), "MAKEFLAGS=") // or a make that runs this test sets V
			inherited.Env = append(os.Environ(), "MAKEFLAGS=", "V="+version)
			for _, cmd := range []*exec.Cmd{given, inherited} {
				out, err := cmd.CombinedOutput()
				require.Error(t, err)
				require.Contains(t, string(out), "release: version "+strconv.Quote(version))
				require.NoFileExists(t, file)
			}
		}
	}
}
