package weir_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEveryExportedTypeHasARunnableExample(t *testing.T) {
	packages := slices.Concat(slices.Collect(maps.Keys(mayImport)), slices.Collect(maps.Keys(moduleImports)))
	seen := 0
	for _, pkg := range packages {
		if pkg == "internal" || pkg == redistestPath {
			continue
		}
		types, shown := typesAndExamples(t, pkg)
		seen += len(types)
		for _, name := range types {
			require.Containsf(t, shown, name, "%s: no Example%s with an output", pkg, name)
		}
	}
	require.Greater(t, seen, 100)
}

// The package example, which comes first on the page, shows a complete use of the package.
func TestEveryPackageHasAPackageExample(t *testing.T) {
	for _, pkg := range slices.Concat(slices.Collect(maps.Keys(mayImport)), slices.Collect(maps.Keys(moduleImports))) {
		if path.Base(pkg) == "internal" || pkg == redistestPath || pkg == "cmd/weir-rules" || pkg == "weirconfig/cmd/weirconfig" || pkg == "exporters/prom/mixin" {
			// tests and programs
			continue
		}
		_, shown := typesAndExamples(t, pkg)
		require.Containsf(t, shown, "", "%s: no func Example with an output", pkg)
	}
}

// README.md lists ten common programs, each with a link to an example.
func TestReadmeListsTenRunnablePrograms(t *testing.T) {
	text, err := readFile("README.md")
	require.NoError(t, err)
	listed := regexp.MustCompile(`(?m)^\| .+ \| \[(\w+)\.(Example\w*)\]\((\S+_test\.go)\) \|$`).FindAllStringSubmatch(text, -1)
	require.Len(t, listed, 10)
	for _, row := range listed {
		pkg, name, file := row[1], row[2], row[3]
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		require.NoError(t, err)
		require.Equal(t, pkg, strings.TrimSuffix(parsed.Name.Name, "_test"), file)
		require.Truef(t, slices.ContainsFunc(parsed.Decls, func(decl ast.Decl) bool {
			f, ok := decl.(*ast.FuncDecl)
			return ok && f.Name.Name == name && hasOutput(parsed, f)
		}), "%s has no %s with an output", file, name)
	}
}

// typesAndExamples returns the exported types of a package, and the names of its examples that have
// an output.
func typesAndExamples(t *testing.T, dir string) (types, shown []string) {
	if dir == "weir" {
		dir = "."
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) != ".go" {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, entry.Name()), nil, parser.ParseComments)
		require.NoError(t, err)
		if strings.HasSuffix(entry.Name(), "_test.go") {
			shown = append(shown, examplesIn(file)...)
		} else {
			types = append(types, typesIn(file)...)
		}
	}
	return types, shown
}

func typesIn(file *ast.File) (names []string) {
	for _, decl := range file.Decls {
		group, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range group.Specs {
			if typ, ok := spec.(*ast.TypeSpec); ok && typ.Name.IsExported() {
				names = append(names, typ.Name.Name)
			}
		}
	}
	return names
}

func examplesIn(file *ast.File) (names []string) {
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || !strings.HasPrefix(f.Name.Name, "Example") || !hasOutput(file, f) {
			continue
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(f.Name.Name, "Example"), "_")
		names = append(names, name)
	}
	return names
}

// hasOutput reports whether the function has an Output comment. Without it, an example is compiled
// but not run.
func hasOutput(file *ast.File, f *ast.FuncDecl) bool {
	return slices.ContainsFunc(file.Comments, func(c *ast.CommentGroup) bool {
		text := strings.ToLower(c.Text())
		return f.Pos() < c.Pos() && c.End() < f.End() &&
			(strings.HasPrefix(text, "output:") || strings.HasPrefix(text, "unordered output:"))
	})
}
