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

func TestEveryExportedTypeHasAnExampleThatRuns(t *testing.T) {
	rooms := slices.Concat(slices.Collect(maps.Keys(mayImport)), slices.Collect(maps.Keys(apart)))
	seen := 0
	for _, room := range rooms {
		if room == "internal" {
			continue
		}
		types, shown := typesAndExamples(t, room)
		seen += len(types)
		for _, name := range types {
			require.Containsf(t, shown, name, "%s: no Example%s with an output", room, name)
		}
	}
	require.Greater(t, seen, 100)
}

// The first example of a page is that of the package, which shows its main use as a whole.
func TestEveryPackageHasAnExampleOfItsOwn(t *testing.T) {
	for _, room := range slices.Concat(slices.Collect(maps.Keys(mayImport)), slices.Collect(maps.Keys(apart))) {
		if path.Base(room) == "internal" || room == "cmd/weir-rules" || room == "exporters/prom/mixin" { // a program, and tests
			continue
		}
		_, shown := typesAndExamples(t, room)
		require.Containsf(t, shown, "", "%s: no func Example with an output", room)
	}
}

// README lists the ten programs that every user should get right, by the example that shows each.
func TestReadmeListsTenProgramsThatRun(t *testing.T) {
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

// typesAndExamples lists the types that a package exports, and those that an example with an output is named after.
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

// hasOutput reports whether a comment in the function says what it prints, without which it is compiled but not run.
func hasOutput(file *ast.File, f *ast.FuncDecl) bool {
	return slices.ContainsFunc(file.Comments, func(c *ast.CommentGroup) bool {
		text := strings.ToLower(c.Text())
		return f.Pos() < c.Pos() && c.End() < f.End() &&
			(strings.HasPrefix(text, "output:") || strings.HasPrefix(text, "unordered output:"))
	})
}
