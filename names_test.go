package weir_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Documents and comments of Go files may only use qualified names that exist, such as
// breaker.Config.Classify.
func TestPagesNameExistingIdentifiers(t *testing.T) {
	exported, named := exportedNames(t)
	pages := []string{"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"}
	for _, pattern := range []string{"docs/*.md", "exporters/prom/mixin/*.yml", "exporters/prom/mixin/*.json"} {
		more, err := filepath.Glob(pattern)
		require.NoError(t, err)
		pages = append(pages, more...)
	}
	for _, dir := range publicDirs() {
		more, err := filepath.Glob(filepath.Join(dir, "*.go"))
		require.NoError(t, err)
		pages = append(pages, slices.DeleteFunc(more, func(name string) bool { return strings.HasSuffix(name, "_test.go") })...)
	}
	found := 0
	for _, page := range pages {
		text, err := readFile(page)
		require.NoError(t, err)
		if filepath.Ext(page) == ".go" {
			text = strings.Join(regexp.MustCompile(`//.*`).FindAllString(text, -1), "\n")
		}
		for _, name := range unknownNames(text, exported, named, &found) {
			t.Errorf("%s names %s, which does not exist", page, name)
		}
	}
	require.Greater(t, found, 100)
}

func TestTheNamesCheckFindsMistakes(t *testing.T) {
	exported, named := exportedNames(t)
	for text, want := range map[string][]string{
		"`breaker.Config.Classify`, weir.Do and limiter.TokenBucket.Take": nil,
		"`breaker.Trial` is a state":                                      {"breaker.Trial"},
		"see limiter.Config":                                              {"limiter.Config"},
		"limiter.TokenBucket.TryWait waits":                               {"limiter.TokenBucket.TryWait"},
		"github.com/weir-go/weir.X and fleet/redis.Y are no names":        nil,
		"breaker.ExampleGroup is in a test":                               nil,
	} {
		found := 0
		require.Equal(t, want, unknownNames(text, exported, named, &found), text)
	}
}

// unknownNames returns the qualified names in a text that do not exist. It adds the number of the
// qualified names that exist to found.
func unknownNames(text string, exported map[string]map[string]bool, named *regexp.Regexp, found *int) (unknown []string) {
	for _, m := range named.FindAllStringSubmatch(text, -1) {
		pkg, name, member := m[1], m[2], m[3]
		if strings.HasPrefix(name, "Example") {
			continue
		}
		if exported[pkg][name] && (member == "" || exported[pkg][member]) {
			*found++
			continue
		}
		unknown = append(unknown, strings.TrimSuffix(pkg+"."+name+"."+member, "."))
	}
	return unknown
}

// publicDirs returns the folders of the public packages.
func publicDirs() (dirs []string) {
	for _, pkg := range slices.Concat(slices.Collect(maps.Keys(mayImport)), slices.Collect(maps.Keys(moduleImports))) {
		switch {
		case path.Base(pkg) == "internal":
		case pkg == "weir":
			dirs = append(dirs, ".")
		default:
			dirs = append(dirs, pkg)
		}
	}
	return dirs
}

// exportedNames returns the exported names of each package, including members of types, and a
// regexp for such names.
func exportedNames(t *testing.T) (map[string]map[string]bool, *regexp.Regexp) {
	exported := map[string]map[string]bool{}
	for _, dir := range publicDirs() {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		require.NoError(t, err)
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
			require.NoError(t, err)
			pkg := file.Name.Name
			if exported[pkg] == nil {
				exported[pkg] = map[string]bool{}
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok && id.IsExported() {
					exported[pkg][id.Name] = true
				}
				switch n.(type) {
				case *ast.BlockStmt, *ast.SelectorExpr: // uses names, does not declare them
					return false
				}
				return true
			})
		}
	}
	delete(exported, "main")
	packages := slices.Sorted(maps.Keys(exported))
	return exported, regexp.MustCompile(`(?:^|[^\w./])(` + strings.Join(packages, "|") + `)\.([A-Z]\w*)(?:\.([A-Z]\w*))?`)
}
