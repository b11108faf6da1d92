// Package modules lists the Go modules of a checkout.
package modules

import (
	"bytes"
	"context"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// Core is the path of the module in the root directory. The paths of all other modules begin with
// it.
const Core = "github.com/weir-go/weir"

// A Module is one go.mod file and the directory it is in.
type Module struct {
	Dir  string // relative to the root of the checkout, with slashes; "." for the core
	Path string
}

// List returns the modules of the checkout in the directory root, sorted by directory. Files that
// git ignores are left out.
func List(ctx context.Context, root string) ([]Module, error) {
	files, err := Git(ctx, root, "ls-files", "--cached", "--others", "--exclude-standard", "go.mod", "*/go.mod")
	if err != nil {
		return nil, err
	}
	var modules []Module
	for file := range strings.FieldsSeq(files) {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
		if err != nil {
			return nil, err
		}
		m := Module{Dir: path.Dir(file), Path: modfile.ModulePath(text)}
		if want := path.Join(Core, m.Dir); m.Path != want {
			return nil, fmt.Errorf("%s: the module path is %q, want %q", file, m.Path, want)
		}
		modules = append(modules, m)
	}
	if len(modules) == 0 {
		return nil, fmt.Errorf("%s: no module in this checkout", root)
	}
	slices.SortFunc(modules, func(a, b Module) int { return strings.Compare(a.Dir, b.Dir) })
	return modules, nil
}

// toolPaths are the programs that users do not install by their version, but add to their own
// module with go get -tool. Their modules may have replace directives.
var toolPaths = []string{Core + "/weirconfig/cmd/weirconfig"}

// IsTool reports whether a program is added to the module of a user.
func IsTool(program string) bool { return slices.Contains(toolPaths, program) }

// Released reports whether users can require the module, so that it gets a tag with every release.
// Examples and the modules for development do not.
func (m Module) Released() bool { return m.Dir != "examples" && !strings.HasPrefix(m.Dir, "dev/") }

// Tag returns the name of the tag that makes the version of this module known to the go command.
func (m Module) Tag(version string) string { return strings.TrimPrefix(m.Dir+"/"+version, "./") }

// Git runs git in the directory dir and returns what it prints, without the final newline.
func Git(ctx context.Context, dir string, args ...string) (string, error) {
	return Run(ctx, dir, nil, "git", args...)
}

// Run runs a program in the directory dir and returns what it prints, without the final newline.
// The environment is extended by env. The error of a program that fails contains what it wrote to
// standard error.
func Run(ctx context.Context, dir string, env []string, program string, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", program, strings.Join(args, " "), err, &stderr)
	}
	return strings.TrimSuffix(stdout.String(), "\n"), nil
}

// Packages returns the import paths of the packages that the module m offers to its users, and of
// its programs, that is, its packages main. Both leave out the directories internal and testdata.
func (m Module) Packages(root string) (libraries, programs []string, err error) {
	top := filepath.Join(root, filepath.FromSlash(m.Dir))
	err = filepath.WalkDir(top, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		_, nested := os.Stat(filepath.Join(name, "go.mod"))
		base := entry.Name()
		if name != top && (nested == nil || base == "internal" || base == "testdata" || base == "node_modules" || base[0] == '.' || base[0] == '_') {
			return fs.SkipDir
		}
		dir, err := filepath.Rel(top, name)
		if err != nil {
			return err
		}
		switch kind, err := packageName(name); {
		case err != nil:
			return err
		case kind == "main":
			programs = append(programs, path.Join(m.Path, filepath.ToSlash(dir)))
		case kind != "":
			libraries = append(libraries, path.Join(m.Path, filepath.ToSlash(dir)))
		}
		return nil
	})
	return libraries, programs, err
}

// packageName returns the name of the package in the directory dir, or "" if only tests are there.
func packageName(dir string) (string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return "", err
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.PackageClauseOnly)
		if err != nil {
			return "", err
		}
		return file.Name.Name, nil
	}
	return "", nil
}
