package weir_test

import (
	"path"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	usesAction   = regexp.MustCompile(`(?m)^\s*(?:- )?uses:(.*)$`)
	pinnedAction = regexp.MustCompile(`^ [\w-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
)

// Workflows must pin actions to commits, because tags can be moved.
func TestActionsArePinnedToCommits(t *testing.T) {
	files, err := filepath.Glob(".github/workflows/*.y*ml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := readFile(file)
		require.NoError(t, err)
		uses := usesAction.FindAllStringSubmatch(text, -1)
		require.NotEmpty(t, uses, file)
		for _, u := range uses {
			require.Regexp(t, pinnedAction, u[1], file)
		}
	}
}

func TestDependabotLooksAfterEveryModule(t *testing.T) {
	text, err := readFile(".github/dependabot.yml")
	require.NoError(t, err)
	var listed []string
	for _, match := range regexp.MustCompile(`(?m)^      - (/\S*)$`).FindAllStringSubmatch(text, -1) {
		listed = append(listed, match[1])
	}
	var want []string
	for _, dir := range moduleDirs(t) {
		want = append(want, path.Join("/", dir))
	}
	require.ElementsMatch(t, want, listed)
}
