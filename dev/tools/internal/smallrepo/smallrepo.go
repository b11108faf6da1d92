// Package smallrepo makes small repositories with several modules, on which tests try releases.
package smallrepo

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/dev/tools/internal/modules"
)

const license = "You may do anything with this.\n"

// files is a repository with the core, a module extra that requires it, and an example that
// requires both. No module requires a module of another project.
var files = map[string]string{
	"LICENSE":      license,
	"CHANGELOG.md": "# Changelog\n\nWhat changed.\n\n## [Unreleased]\n\n### Added\n\n- Everything.\n",
	"go.mod":       "module github.com/weir-go/weir\n\ngo 1.26.0\n",
	"weir.go":      "// Package weir is small.\npackage weir\n\n// Name is its name.\nconst Name = \"weir\"\n",
	"cmd/weir-name/main.go": "// Command weir-name prints the name.\npackage main\n\nimport \"github.com/weir-go/weir\"\n\n" +
		"func main() { println(weir.Name) }\n",
	"extra/LICENSE": license,
	"extra/go.mod": "module github.com/weir-go/weir/extra\n\ngo 1.26.0\n\nrequire github.com/weir-go/weir v0.0.0\n\n" +
		"replace github.com/weir-go/weir => ../\n",
	"extra/extra.go": "// Package extra adds to weir.\npackage extra\n\nimport \"github.com/weir-go/weir\"\n\n" +
		"// Name is that of weir with more.\nconst Name = weir.Name + \" and more\"\n",
	"examples/go.mod": "module github.com/weir-go/weir/examples\n\ngo 1.26.0\n\nrequire (\n\tgithub.com/weir-go/weir v0.0.0 // indirect\n" +
		"\tgithub.com/weir-go/weir/extra v0.0.0\n)\n\nreplace (\n\tgithub.com/weir-go/weir => ../\n\tgithub.com/weir-go/weir/extra => ../extra\n)\n",
	"examples/hello/main.go": "package main\n\nimport \"github.com/weir-go/weir/extra\"\n\nfunc main() { println(extra.Name) }\n",
}

// New makes the repository with one commit, in a directory that is removed after the test.
func New(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("a repository to release takes seconds, which -short leaves out: make test runs the test")
	}
	dir := t.TempDir()
	for name, text := range files {
		Write(t, dir, name, text)
	}
	Git(t, dir, "init", "--quiet", "--initial-branch=main")
	Git(t, dir, "config", "user.name", "tester")
	Git(t, dir, "config", "user.email", "tester@localhost")
	Commit(t, dir)
	return dir
}

// Write writes a file of the repository.
func Write(t *testing.T, dir, name, text string) {
	t.Helper()
	name = filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o750))
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
}

// Read returns the text of a file of the repository.
func Read(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	require.NoError(t, err)
	return string(text)
}

// Commit commits all files.
func Commit(t *testing.T, dir string) {
	t.Helper()
	Git(t, dir, "add", "--all")
	Git(t, dir, "commit", "--quiet", "--message=a change")
}

// Git runs git in the repository and returns what it prints.
func Git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := modules.Git(t.Context(), dir, args...)
	require.NoError(t, err)
	return out
}
