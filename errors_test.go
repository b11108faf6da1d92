package weir_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// If one error type has a method of some name, no other error type has a field of that name.
// Printing a method as if it were a field compiles, and shows the address of a function.
func TestErrorTypesAgreeOnFieldsAndMethods(t *testing.T) {
	fields, methods := map[string]string{}, map[string]string{}
	errorTypes := 0
	for _, pkg := range slices.Concat(slices.Collect(maps.Keys(mayImport)), slices.Collect(maps.Keys(moduleImports))) {
		if pkg == "internal" {
			continue
		}
		for name, e := range errorTypesIn(t, pkg) {
			errorTypes++
			for _, field := range e.fields {
				fields[field] = pkg + "." + name
			}
			for _, method := range e.methods {
				methods[method] = pkg + "." + name
			}
		}
	}
	require.GreaterOrEqual(t, errorTypes, 5, "OpenError, LimitedError, DeliveryError, StoreError, RefusedError")
	require.Contains(t, methods, "RetryAfter")
	for name, where := range fields {
		require.NotContainsf(t, methods, name, "%s is a field of %s and a method of %s", name, where, methods[name])
	}
}

// members are the exported names of a type.
type members struct{ fields, methods []string }

// errorTypesIn returns the exported types of a package that have a method Error.
func errorTypesIn(t *testing.T, dir string) map[string]members {
	if dir == "weir" {
		dir = "."
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	found := map[string]members{}
	for _, name := range files {
		if matched, _ := filepath.Match("*_test.go", filepath.Base(name)); matched {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		addMembers(file, found)
	}
	maps.DeleteFunc(found, func(name string, m members) bool {
		return !ast.IsExported(name) || !slices.Contains(m.methods, "Error")
	})
	return found
}

func addMembers(file *ast.File, to map[string]members) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Recv != nil && n.Name.IsExported() {
				m := to[receiver(n)]
				m.methods = append(m.methods, n.Name.Name)
				to[receiver(n)] = m
			}
			return false
		case *ast.TypeSpec:
			if s, ok := n.Type.(*ast.StructType); ok {
				m := to[n.Name.Name]
				m.fields = append(m.fields, exportedFields(s)...)
				to[n.Name.Name] = m
			}
			return false
		}
		return true
	})
}

func exportedFields(s *ast.StructType) (names []string) {
	for _, field := range s.Fields.List {
		for _, name := range field.Names {
			if name.IsExported() {
				names = append(names, name.Name)
			}
		}
	}
	return names
}

// receiver returns the name of the type that a method belongs to.
func receiver(f *ast.FuncDecl) string {
	typ := f.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	if generic, ok := typ.(*ast.IndexExpr); ok {
		typ = generic.X
	}
	name, _ := typ.(*ast.Ident)
	if name == nil {
		return ""
	}
	return name.Name
}
