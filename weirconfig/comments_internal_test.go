package weirconfig

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// comments has the doc comments of struct fields, by package directory, type and field, as in
// "../breaker Config.Window".
type comments map[string]string

// of returns the comment of a field in the words of a file.
func (c comments) of(t *testing.T, owner reflect.Type, name string) string {
	t.Helper()
	path, ours := strings.CutPrefix(owner.PkgPath(), "github.com/weir-go/weir")
	require.True(t, ours, owner)
	dir := filepath.Join("..", filepath.FromSlash(path))
	if _, read := c[dir]; !read {
		c[dir] = ""
		c.readPackage(t, dir)
	}
	text := c[dir+" "+owner.Name()+"."+name]
	require.NotEmpty(t, text, "%s.%s has no doc comment", owner, name)
	return fileWords(text, owner)
}

func (c comments) readPackage(t *testing.T, dir string) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				c.readFields(dir+" "+spec.Name.Name, spec)
			}
			return true
		})
	}
}

func (c comments) readFields(name string, spec *ast.TypeSpec) {
	s, ok := spec.Type.(*ast.StructType)
	if !ok {
		return
	}
	for _, f := range s.Fields.List {
		for _, id := range f.Names {
			c[name+"."+id.Name] = strings.Join(strings.Fields(f.Doc.Text()), " ")
		}
	}
}
