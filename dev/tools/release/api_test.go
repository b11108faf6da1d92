package main

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/dev/tools/internal/smallrepo"
)

// The script .ci/api decides which versions may have which changes of the API.
func TestVersionsChangeTheAPIOnlyAsTheyMay(t *testing.T) {
	script, err := filepath.Abs("../../../.ci/api")
	require.NoError(t, err)
	const (
		same    = "package weir\n\n// Name is its own name.\nconst Name = \"weir\"\n"
		added   = same + "\n// More is more.\nconst More = 1\n"
		removed = "package extra\n"
	)
	for name, c := range map[string]struct {
		base, version string
		file, text    string
		want          string // in the output
		refused       bool
	}{
		"a patch with the same API":              {"v0.1.0", "v0.1.1", "weir.go", same, "no change breaks users", false},
		"a patch that adds a name":               {"v0.1.0", "v0.1.1", "weir.go", added, "More: added", true},
		"a patch that removes a name":            {"v0.1.0", "v0.1.1", "extra/extra.go", removed, "Name: removed", true},
		"a patch that adds a package":            {"v0.1.9", "v0.1.10", "new/new.go", "package fresh\n", "weir/new: the package is new", true},
		"a minor version of v0 that removes one": {"v0.1.0", "v0.2.0", "extra/extra.go", removed, "Name: removed", false},
		"a minor version with a similar number":  {"v0.1.0", "v0.10.0", "extra/extra.go", removed, "Name: removed", false},
		"a minor version of v1 that adds a name": {"v1.0.0", "v1.1.0", "weir.go", added, "no change breaks users", false},
		"a minor version of v1 that removes one": {"v1.0.0", "v1.1.0", "extra/extra.go", removed, "Name: removed", true},
		"no version after v0":                    {"v0.1.0", "", "extra/extra.go", removed, "Name: removed", false},
		"a version after its own candidate":      {"v0.2.0-rc.1", "v0.2.0", "extra/extra.go", removed, "Name: removed", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := smallrepo.New(t)
			smallrepo.Git(t, dir, "tag", c.base)
			smallrepo.Write(t, dir, c.file, c.text)
			smallrepo.Commit(t, dir)
			cmd := exec.CommandContext(t.Context(), script, c.base, c.version)
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			require.Contains(t, string(out), c.want)
			require.Equal(t, c.refused, err != nil, "%s", out)
		})
	}
}

func TestTheAPIIsComparedWithTheLastReleaseBeforeTheVersion(t *testing.T) {
	script, err := filepath.Abs("../../../.ci/api")
	require.NoError(t, err)
	dir := smallrepo.New(t)
	smallrepo.Git(t, dir, "tag", "v0.1.0")
	smallrepo.Write(t, dir, "extra/extra.go", "package extra\n")
	smallrepo.Commit(t, dir)
	smallrepo.Git(t, dir, "tag", "v0.1.1")
	cmd := exec.CommandContext(t.Context(), script, "", "v0.1.1")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "the API has changed since v0.1.0, so v0.1.1 cannot be a patch version")
}
