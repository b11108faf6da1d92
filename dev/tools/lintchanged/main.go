// Command lintchanged runs golangci-lint on the packages that differ from the main branch.
//
//	go run -C dev/tools ./lintchanged [-base main]
//
// A package counts as changed if one of its Go files differs from the last commit that HEAD has in
// common with the base, is not committed, or is new. Without the base, only the last two count.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weir-go/weir/dev/tools/internal/modules"
)

func main() {
	base := flag.String("base", "main", "the `branch` to compare with; origin's branch of that name is preferred")
	root := flag.String("root", "../..", "the root of the checkout")
	flag.Parse()
	if err := run(context.Background(), *root, *base); err != nil {
		fmt.Fprintln(os.Stderr, "lintchanged:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, root, base string) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	list, err := modules.List(ctx, root)
	if err != nil {
		return err
	}
	files, err := changedFiles(ctx, root, base)
	if err != nil {
		return err
	}
	packages := packagesByModule(list, files, func(dir string) bool { return hasGoFile(root, dir) })
	failed := false
	for _, m := range list {
		if len(packages[m.Dir]) == 0 {
			continue
		}
		fmt.Println("-- lint", m.Dir, strings.Join(packages[m.Dir], " "))
		cmd := exec.CommandContext(ctx, "go", slices.Concat([]string{
			"tool", "-modfile=" + filepath.Join(root, "dev", "tools", "go.mod"),
			"golangci-lint", "run", "--config=" + filepath.Join(root, ".golangci.yml"),
		}, packages[m.Dir])...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = filepath.Join(root, m.Dir), os.Stdout, os.Stderr
		failed = cmd.Run() != nil || failed
	}
	if failed {
		return fmt.Errorf("the linter found faults in what changed since %s", base)
	}
	return nil
}

// changedFiles returns the names of the files that differ from the base, relative to root.
func changedFiles(ctx context.Context, root, base string) ([]string, error) {
	since := "HEAD"
	for _, branch := range []string{"origin/" + base, base} {
		if common, err := modules.Git(ctx, root, "merge-base", "HEAD", branch); err == nil {
			since = common
			break
		}
	}
	changed, err := modules.Git(ctx, root, "diff", "--name-only", since)
	if err != nil {
		return nil, err
	}
	created, err := modules.Git(ctx, root, "ls-files", "--others", "--exclude-standard")
	return strings.Fields(changed + "\n" + created), err
}

// packagesByModule returns the directories of the packages that the files belong to, by the
// directory of their module. A package whose directory holds no Go file any more is left out.
func packagesByModule(list []modules.Module, files []string, exists func(dir string) bool) map[string][]string {
	packages := map[string][]string{}
	for _, file := range files {
		dir := path.Dir(file)
		if path.Ext(file) != ".go" || strings.Contains(file, "testdata/") || !exists(dir) {
			continue
		}
		module := owningModule(list, dir)
		name := "."
		if dir != module {
			name = "./" + strings.TrimPrefix(dir, strings.TrimPrefix(module+"/", "./"))
		}
		if !slices.Contains(packages[module], name) {
			packages[module] = append(packages[module], name)
		}
	}
	return packages
}

// owningModule returns the directory of the innermost module that contains dir.
func owningModule(list []modules.Module, dir string) string {
	innermost := "."
	for _, m := range list {
		inside := dir == m.Dir || strings.HasPrefix(dir, m.Dir+"/")
		if inside && len(m.Dir) > len(innermost) {
			innermost = m.Dir
		}
	}
	return innermost
}

func hasGoFile(root, dir string) bool {
	files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	return err == nil && len(files) > 0
}
