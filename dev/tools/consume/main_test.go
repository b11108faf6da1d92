package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/dev/tools/internal/modules"
	"github.com/weir-go/weir/dev/tools/internal/smallrepo"
)

// consume makes a release of the repository in a copy, changes files of the copy, moves the tags
// there, and uses the result. Modules come from the copy alone, because there is no proxy with
// others.
func consume(t *testing.T, repository string, changes map[string]func(text string) string) error {
	t.Helper()
	dir := t.TempDir()
	t.Cleanup(func() { require.NoError(t, removeAll(dir)) })
	checkout := filepath.Join(dir, "copy")
	version, err := releaseCopy(t.Context(), repository, checkout)
	require.NoError(t, err)
	require.Equal(t, "v0.1.0", version)
	for name, change := range changes {
		text := smallrepo.Read(t, checkout, name)
		changed := change(text)
		require.NotEqual(t, text, changed)
		smallrepo.Write(t, checkout, name, changed)
	}
	if len(changes) > 0 {
		smallrepo.Commit(t, checkout)
		for tag := range strings.FieldsSeq(smallrepo.Git(t, checkout, "tag", "--list")) {
			smallrepo.Git(t, checkout, "tag", "--force", tag)
		}
	}
	return use(t.Context(), checkout, version, "off", dir)
}

// replace returns a function that replaces a part of a text.
func replace(old, with string) func(text string) string {
	return func(text string) string { return strings.ReplaceAll(text, old, with) }
}

func TestAReleaseCanBeUsed(t *testing.T) {
	repository := smallrepo.New(t)
	before := smallrepo.Git(t, repository, "for-each-ref")
	require.NoError(t, consume(t, repository, nil))
	require.Equal(t, before, smallrepo.Git(t, repository, "for-each-ref"), "the original is not touched")
	require.Empty(t, smallrepo.Git(t, repository, "status", "--porcelain"))
}

func TestAReleaseThatIsTaggedIsUsedAsItIs(t *testing.T) {
	repository := smallrepo.New(t)
	dir := filepath.Join(t.TempDir(), "copy")
	_, err := releaseCopy(t.Context(), repository, dir)
	require.NoError(t, err)
	require.NoError(t, consume(t, dir, nil))
}

func TestTheVersionAfterARelease(t *testing.T) {
	repository := smallrepo.New(t)
	smallrepo.Git(t, repository, "tag", "v0.9.3")
	smallrepo.Git(t, repository, "tag", "extra/v1.0.0")
	version, err := nextVersion(t.Context(), repository)
	require.NoError(t, err)
	require.Equal(t, "v0.10.0", version)
}

func TestMistakesThatOnlyUsersWouldSeeAreFound(t *testing.T) {
	for name, c := range map[string]struct {
		file   string
		change func(text string) string
		want   string
	}{
		"v0.0.0 in a module": {
			"extra/go.mod", replace("v0.1.0", "v0.0.0"), "module github.com/weir-go/weir/extra: ",
		},
		"v0.0.0 in the examples": {
			"examples/go.mod", replace("v0.1.0", "v0.0.0"), "examples/hello: ",
		},
		"a replace directive beside a program": {
			"go.mod", replace("go 1.26.0", "go 1.26.0\n\nreplace example.com/a => ../a"), "cmd/weir-name@v0.1.0: exit status 1",
		},
		"code that exists in the checkout only": {
			"examples/hello/main.go", replace("weir/extra", "weir/examples/extra"), "examples/hello: ",
		},
		"a core that needs another module": {
			"weir.go", replace("package weir\n", "package weir\n\nimport _ \"example.com/a\"\n"), "module github.com/weir-go/weir: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := consume(t, smallrepo.New(t), map[string]func(string) string{c.file: c.change})
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestLinkedModulesAreJudged(t *testing.T) {
	u := user{version: "v0.1.0"}
	core := []modules.Module{{Dir: ".", Path: modules.Core}}
	extra := []modules.Module{{Dir: "extra", Path: modules.Core + "/extra"}}
	for _, c := range []struct {
		linked string
		list   []modules.Module
		want   string
	}{
		{"github.com/weir-go/weir v0.1.0 true\n", core, ""},
		{"github.com/weir-go/weir v0.1.0 true\ngithub.com/weir-go/weir/extra v0.1.0 true\nexample.com/a v1.0.0 true\n", extra, ""},
		{"github.com/weir-go/weir v0.1.0 true\nexample.com/a v1.0.0 true\n", core, "the core links example.com/a"},
		{"github.com/weir-go/weir v0.0.9 true\n", core, "want version v0.1.0"},
		{"github.com/weir-go/weir v0.1.0 false\n", core, "not replaced"},
		{"github.com/weir-go/weir v0.1.0 true\n", extra, "not linked: [github.com/weir-go/weir/extra]"},
	} {
		err := u.checkLinked(c.linked, c.list)
		if c.want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, c.want)
	}
}

func TestTheCoreDependsOnTheStandardLibraryAlone(t *testing.T) {
	require.NoError(t, checkPackages("github.com/weir-go/weir/window\ngithub.com/weir-go/weir\n\nexample.com/weir\n"))
	require.ErrorContains(t, checkPackages("github.com/weir-go/weirder\n"), "the core depends on github.com/weir-go/weirder")
}

// If only the tests of a module need the core, the go command builds the module without the core.
// So building it would not find a wrong version of the core.
func TestAVersionThatOnlyTestsNeedIsChecked(t *testing.T) {
	repository := smallrepo.New(t)
	smallrepo.Write(t, repository, "lonely/go.mod", "module github.com/weir-go/weir/lonely\n\ngo 1.26.0\n\n"+
		"require github.com/weir-go/weir v0.0.0\n\nreplace github.com/weir-go/weir => ../\n")
	smallrepo.Write(t, repository, "lonely/lonely.go", "// Package lonely needs nothing.\npackage lonely\n")
	smallrepo.Write(t, repository, "lonely/lonely_test.go", "package lonely\n\nimport _ \"github.com/weir-go/weir\"\n")
	smallrepo.Commit(t, repository)
	require.NoError(t, consume(t, repository, nil))
	err := consume(t, repository, map[string]func(string) string{"lonely/go.mod": replace("v0.1.0", "v0.0.0")})
	require.ErrorContains(t, err, "module github.com/weir-go/weir/lonely: go list -m all")
}
