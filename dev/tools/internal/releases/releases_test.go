package releases_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/dev/tools/internal/releases"
	"github.com/weir-go/weir/dev/tools/internal/smallrepo"
)

func failingCI(context.Context) error { return errors.New("red") }

func passingCI(context.Context) error { return nil }

// release makes a release and returns what it prints.
func release(t *testing.T, dir, version string) string {
	t.Helper()
	var out strings.Builder
	require.NoError(t, releases.Release{Root: dir, Version: version, Green: passingCI}.Make(t.Context(), &out))
	return out.String()
}

// repositoryState returns all that a release could change: the commits, the tags and the files.
func repositoryState(t *testing.T, dir string) string {
	t.Helper()
	return smallrepo.Git(t, dir, "for-each-ref") + smallrepo.Git(t, dir, "rev-parse", "HEAD") +
		smallrepo.Git(t, dir, "status", "--porcelain") + smallrepo.Git(t, dir, "stash", "list")
}

func TestReleaseSetsVersionsAndTagsEveryModule(t *testing.T) {
	dir := smallrepo.New(t)
	printed := release(t, dir, "v0.1.0")

	require.Contains(t, smallrepo.Read(t, dir, "extra/go.mod"), "require github.com/weir-go/weir v0.1.0\n\nreplace github.com/weir-go/weir => ../\n")
	example := smallrepo.Read(t, dir, "examples/go.mod")
	require.Contains(t, example, "github.com/weir-go/weir v0.1.0 // indirect\n")
	require.Contains(t, example, "github.com/weir-go/weir/extra v0.1.0\n")
	require.Regexp(t, `\n## \[Unreleased\]\n\n## \[0\.1\.0\] - \d{4}-\d\d-\d\d\n\n### Added\n\n- Everything\.\n$`, smallrepo.Read(t, dir, "CHANGELOG.md"))

	require.Equal(t, "extra/v0.1.0\nv0.1.0", smallrepo.Git(t, dir, "tag", "--list"), "examples are not released")
	head := smallrepo.Git(t, dir, "rev-parse", "HEAD")
	for _, tag := range []string{"v0.1.0", "extra/v0.1.0"} {
		require.Equal(t, head, smallrepo.Git(t, dir, "rev-parse", tag+"^{commit}"))
	}
	require.Equal(t, "release: v0.1.0", smallrepo.Git(t, dir, "show", "--no-patch", "--format=%s"))
	require.Empty(t, smallrepo.Git(t, dir, "status", "--porcelain"))
	require.Contains(t, printed, "git push --atomic origin "+head+":refs/heads/main extra/v0.1.0\n  git push origin v0.1.0\n")
	require.NoError(t, releases.Release{Root: dir, Version: "v0.1.0"}.Check(t.Context()))
}

func TestAToolMayBeInAModuleWithAReplaceDirective(t *testing.T) {
	dir := smallrepo.New(t)
	smallrepo.Write(t, dir, "weirconfig/LICENSE", smallrepo.Read(t, dir, "LICENSE"))
	smallrepo.Write(t, dir, "weirconfig/go.mod", strings.ReplaceAll(smallrepo.Read(t, dir, "extra/go.mod"), "weir/extra", "weir/weirconfig"))
	smallrepo.Write(t, dir, "weirconfig/cmd/weirconfig/main.go", "package main\n\nfunc main() {}\n")
	smallrepo.Commit(t, dir)
	require.Contains(t, release(t, dir, "v0.1.0"), "weirconfig/v0.1.0")
}

func TestASecondRunChangesNothing(t *testing.T) {
	dir := smallrepo.New(t)
	first := release(t, dir, "v0.1.0")
	before := repositoryState(t, dir)
	red := releases.Release{Root: dir, Version: "v0.1.0", Green: func(context.Context) error { return errors.New("not asked") }}
	var second strings.Builder
	require.NoError(t, red.Make(t.Context(), &second))
	require.Equal(t, first, second.String())
	require.Equal(t, before, repositoryState(t, dir))

	smallrepo.Write(t, dir, "weir.go", "package weir\n")
	smallrepo.Commit(t, dir)
	before = repositoryState(t, dir)
	release(t, dir, "v0.1.0")
	require.Equal(t, before, repositoryState(t, dir), "nor does it after the release, on later commits")
}

func TestARunThatWasInterruptedIsFinished(t *testing.T) {
	for name, tags := range map[string][]string{
		"before all tags":             {"v0.1.0", "extra/v0.1.0"},
		"before the tag of the core":  {"v0.1.0"},
		"a tag was removed afterward": {"extra/v0.1.0"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := smallrepo.New(t)
			release(t, dir, "v0.1.0")
			head := smallrepo.Git(t, dir, "rev-parse", "HEAD")
			for _, tag := range tags {
				smallrepo.Git(t, dir, "tag", "--delete", tag)
			}
			release(t, dir, "v0.1.0")
			require.Equal(t, head, smallrepo.Git(t, dir, "rev-parse", "HEAD"))
			require.NoError(t, releases.Release{Root: dir, Version: "v0.1.0"}.Check(t.Context()))
		})
	}
}

func TestTheNextReleaseFollowsTheLast(t *testing.T) {
	dir := smallrepo.New(t)
	release(t, dir, "v0.1.0")
	log := strings.Replace(smallrepo.Read(t, dir, "CHANGELOG.md"), "[Unreleased]\n", "[Unreleased]\n\n- More.\n", 1)
	smallrepo.Write(t, dir, "CHANGELOG.md", log)
	smallrepo.Commit(t, dir)
	release(t, dir, "v0.2.0")
	require.Contains(t, smallrepo.Read(t, dir, "extra/go.mod"), "weir v0.2.0\n")
	require.Regexp(t, `Unreleased\]\n\n## \[0\.2\.0\] - \S+\n\n- More\.\n\n## \[0\.1\.0\]`, smallrepo.Read(t, dir, "CHANGELOG.md"))
	for _, version := range []string{"v0.1.0", "v0.2.0"} {
		require.NoError(t, releases.Release{Root: dir, Version: version}.Check(t.Context()))
	}
}

// badReleases are changes to a small repository after which it cannot be released, and the errors.
var badReleases = map[string]struct {
	version string
	prepare func(t *testing.T, dir string)
	green   func(context.Context) error
	want    string
}{
	"CI is red": {
		green: func(context.Context) error { return errors.New("make ci: exit status 2") }, want: "make ci: exit status 2",
	},
	"the tree is not clean": {
		prepare: func(t *testing.T, dir string) { smallrepo.Write(t, dir, "weir.go", "package weir\n") },
		want:    "the tree is not clean:\n M weir.go",
	},
	"a file is new": {
		prepare: func(t *testing.T, dir string) { smallrepo.Write(t, dir, "new.go", "package weir\n") },
		want:    "the tree is not clean:\n?? new.go",
	},
	"nothing is unreleased": {
		prepare: func(t *testing.T, dir string) {
			smallrepo.Write(t, dir, "CHANGELOG.md", "# Changelog\n\n## [Unreleased]\n")
			smallrepo.Commit(t, dir)
		},
		want: "the section Unreleased of CHANGELOG.md is empty",
	},
	"there is no section": {
		prepare: func(t *testing.T, dir string) {
			smallrepo.Write(t, dir, "CHANGELOG.md", "# Changelog\n")
			smallrepo.Commit(t, dir)
		},
		want: "is empty",
	},
	"a program cannot be installed": {
		prepare: func(t *testing.T, dir string) {
			smallrepo.Write(t, dir, "extra/cmd/main.go", "package main\n\nfunc main() {}\n")
			smallrepo.Commit(t, dir)
		},
		want: "github.com/weir-go/weir/extra/cmd cannot be installed: extra/go.mod has a replace directive",
	},
	"a module has the wrong path": {
		prepare: func(t *testing.T, dir string) {
			smallrepo.Write(t, dir, "more/go.mod", "module example.com/more\n")
			smallrepo.Commit(t, dir)
		},
		want: `more/go.mod: the module path is "example.com/more", want "github.com/weir-go/weir/more"`,
	},
	"a tag is taken": {
		prepare: func(t *testing.T, dir string) { smallrepo.Git(t, dir, "tag", "v0.1.0") },
		want:    "",
	},
	"a branch has the name": {prepare: func(t *testing.T, dir string) { smallrepo.Git(t, dir, "branch", "v0.1.0") }, green: failingCI, want: "red"},
	"a prerelease":          {version: "v0.1.0-rc.1", want: `version "v0.1.0-rc.1" is a prerelease, want one such as v0.1.0`},
	"a tagged prerelease": {
		version: "v0.1.0-rc.1",
		prepare: func(t *testing.T, dir string) { smallrepo.Git(t, dir, "tag", "v0.1.0-rc.1") },
		want:    `version "v0.1.0-rc.1" is a prerelease`,
	},
	"build metadata":        {version: "v0.1.0+1", want: `version "v0.1.0+1", want`},
	"a revision":            {version: "HEAD", want: `version "HEAD", want`},
	"an option":             {version: "--all", want: `version "--all", want`},
	"no version":            {version: "1.0", want: `version "1.0", want one such as v0.1.0`},
	"a short version":       {version: "v1.0", want: `version "v1.0", want`},
	"another major version": {version: "v2.0.0", want: `version "v2.0.0", want`},
	"an older version": {
		version: "v0.0.9",
		prepare: func(t *testing.T, dir string) { smallrepo.Git(t, dir, "tag", "v0.1.0") },
		want:    "version v0.0.9 is not above v0.1.0",
	},
}

func TestAReleaseThatFailsChangesNothing(t *testing.T) {
	for name, c := range badReleases {
		t.Run(name, func(t *testing.T) {
			dir := smallrepo.New(t)
			if c.prepare != nil {
				c.prepare(t, dir)
			}
			r := releases.Release{Root: dir, Version: "v0.1.0", Green: passingCI}
			if c.version != "" {
				r.Version = c.version
			}
			if c.green != nil {
				r.Green = c.green
			}
			before := repositoryState(t, dir)
			err := r.Make(t.Context(), io.Discard)
			require.Error(t, err)
			require.ErrorContains(t, err, c.want)
			require.Equal(t, before, repositoryState(t, dir))
		})
	}
}

func TestCheckFindsChangesThatMakeDoesNotMake(t *testing.T) {
	for name, c := range map[string]struct {
		tamper func(t *testing.T, dir string)
		want   string
	}{
		"a module requires the placeholder": {
			func(t *testing.T, dir string) {
				text := strings.Replace(smallrepo.Read(t, dir, "extra/go.mod"), "v0.1.0", "v0.0.0", 1)
				smallrepo.Write(t, dir, "extra/go.mod", text)
			},
			"-require github.com/weir-go/weir v0.1.0\n+require github.com/weir-go/weir v0.0.0",
		},
		"the code changed too": {
			func(t *testing.T, dir string) { smallrepo.Write(t, dir, "weir.go", "package weir\n") },
			"weir.go",
		},
		"another date": {
			func(t *testing.T, dir string) {
				text := strings.Replace(smallrepo.Read(t, dir, "CHANGELOG.md"), "[0.1.0] - 2", "[0.1.0] - 1", 1)
				smallrepo.Write(t, dir, "CHANGELOG.md", text)
			},
			"CHANGELOG.md",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := smallrepo.New(t)
			release(t, dir, "v0.1.0")
			c.tamper(t, dir)
			smallrepo.Git(t, dir, "commit", "--quiet", "--all", "--amend", "--no-edit")
			smallrepo.Git(t, dir, "tag", "--force", "v0.1.0")
			smallrepo.Git(t, dir, "tag", "--force", "extra/v0.1.0")
			r := releases.Release{Root: dir, Version: "v0.1.0"}
			err := r.Check(t.Context())
			require.ErrorContains(t, err, "is not what make release V=v0.1.0 makes")
			require.ErrorContains(t, err, c.want)
			require.Error(t, r.Make(t.Context(), io.Discard))
		})
	}
}

func TestCheckSeesTagsThatAreMissingOrElsewhere(t *testing.T) {
	dir := smallrepo.New(t)
	r := releases.Release{Root: dir, Version: "v0.1.0"}
	require.ErrorContains(t, r.Check(t.Context()), "there is no tag v0.1.0")
	release(t, dir, "v0.1.0")
	smallrepo.Git(t, dir, "tag", "--delete", "extra/v0.1.0")
	require.EqualError(t, r.Check(t.Context()), "the tag extra/v0.1.0 is missing")
	smallrepo.Git(t, dir, "tag", "extra/v0.1.0", "HEAD^")
	require.ErrorContains(t, r.Check(t.Context()), "the tag extra/v0.1.0 is at ")
	require.ErrorContains(t, r.Make(t.Context(), io.Discard), "the tag extra/v0.1.0 is at ")
}

func TestARemoteCheckoutOfTheTagIsChecked(t *testing.T) {
	dir := smallrepo.New(t)
	release(t, dir, "v0.1.0")
	clone := t.TempDir()
	smallrepo.Git(t, clone, "clone", "--quiet", "--branch=v0.1.0", dir, ".")
	require.NoError(t, releases.Release{Root: clone, Version: "v0.1.0"}.Check(t.Context()))
}
