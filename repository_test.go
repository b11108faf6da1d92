package weir_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
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

// Go code in README.md and in docs is quoted from compiled files. A comment above each block names
// the file and the region:
//
//	<!-- quote: examples/readme/main.go payments -->
//	```go
//	…
//	```
//
// In that file two lines enclose the region:
//
//	//readme:payments
//	…
//	//readme:end
//
// The comparison ignores the indentation of the first of these lines, and blank lines at both ends.

func TestReadmeQuotesCompiledCode(t *testing.T) {
	require.Positive(t, checkPage(t, "README.md"))
}

func TestReadmeSaysHowToGetEveryModule(t *testing.T) {
	text, err := readFile("README.md")
	require.NoError(t, err)
	for _, dir := range libraryDirs(t) {
		require.Regexp(t, `(?m)^go get `+path.Join(module, dir)+`( |$)`, text)
	}
}

func TestDocsQuoteCompiledCode(t *testing.T) {
	quotes := 0
	for _, page := range docs(t) {
		quotes += checkPage(t, page)
	}
	require.Positive(t, quotes)
}

// docs returns the pages below docs.
func docs(t *testing.T) (pages []string) {
	t.Helper()
	require.NoError(t, fs.WalkDir(os.DirFS("."), "docs", func(name string, _ fs.DirEntry, err error) error {
		if path.Ext(name) == ".md" {
			pages = append(pages, name)
		}
		return err
	}))
	return pages
}

// checkPage checks every Go block of a page and returns how many there are.
func checkPage(t *testing.T, page string) int {
	t.Helper()
	text, err := readFile(page)
	require.NoError(t, err)
	blocks := goBlocks(page, text)
	for _, b := range blocks {
		require.NoError(t, b.check(readFile))
	}
	return len(blocks)
}

func TestTheQuoteCheckFindsMistakes(t *testing.T) {
	const source = "package p\n\nfunc f() {\n\t//readme:use\n\n\tif ok {\n\t\tgo run()\n\t}\n\t//readme:end\n}\n\n//readme:open\nvar x int\n"
	files := func(name string) (string, error) {
		if name != "use.go" {
			return "", fmt.Errorf("open %s: no such file", name)
		}
		return source, nil
	}
	const code = "if ok {\n\tgo run()\n}\n"
	cases := map[string]struct{ readme, want string }{
		"quoted":           {"<!-- quote: use.go use -->\n```go\n" + code + "```\n", ""},
		"blank line apart": {"<!-- quote: use.go use -->\n\n```go\n" + code + "```\n", ""},
		"a word differs":   {"<!-- quote: use.go use -->\n```go\n" + strings.Replace(code, "run", "walk", 1) + "```\n", "README.md:2 differs from use.go use"},
		"a line is left":   {"<!-- quote: use.go use -->\n```go\nif ok {\n}\n```\n", "README.md:2 differs from use.go use"},
		"no comment":       {"Like so:\n```go\n" + code + "```\n", "README.md:2 has no quote comment"},
		"used up comment":  {"<!-- quote: use.go use -->\n```go\n" + code + "```\n```go\n" + code + "```\n", "README.md:7 has no quote comment"},
		"no region":        {"<!-- quote: use.go gone -->\n```go\n" + code + "```\n", "use.go has no region gone"},
		"no end":           {"<!-- quote: use.go open -->\n```go\nvar x int\n```\n", "use.go has no region open"},
		"no file":          {"<!-- quote: gone.go use -->\n```go\n" + code + "```\n", "open gone.go: no such file"},
		"not compiled":     {"<!-- quote: use.txt use -->\n```go\n" + code + "```\n", "use.txt is no Go file"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var err error
			for _, b := range goBlocks("README.md", c.readme) {
				if err == nil {
					err = b.check(files)
				}
			}
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
		})
	}
}

// goBlock is a fenced block of Go code and the region that it quotes.
type goBlock struct {
	at           string // the page and the line
	file, region string
	code         string
}

// goBlocks returns the fenced Go blocks of a Markdown page. A comment belongs to the block that
// follows it after blank lines only.
func goBlocks(page, text string) []goBlock {
	var blocks []goBlock
	var quote []string
	inside := false
	for i, line := range strings.Split(text, "\n") {
		fence := strings.TrimSpace(line)
		switch {
		case inside && fence == "```":
			inside, quote = false, nil
		case inside:
			blocks[len(blocks)-1].code += line + "\n"
		case fence == "```go":
			b := goBlock{at: fmt.Sprintf("%s:%d", page, i+1)}
			if len(quote) == 2 {
				b.file, b.region = quote[0], quote[1]
			}
			blocks, inside = append(blocks, b), true
		case strings.HasPrefix(fence, "<!-- quote: "):
			quote = strings.Fields(strings.TrimSuffix(strings.TrimPrefix(fence, "<!-- quote: "), "-->"))
		case fence != "":
			quote = nil
		}
	}
	return blocks
}

// check compares the block with the region that it quotes.
func (b goBlock) check(read func(name string) (string, error)) error {
	if b.file == "" {
		return fmt.Errorf("%s has no quote comment: put <!-- quote: file region --> above it", b.at)
	}
	if !strings.HasSuffix(b.file, ".go") {
		return fmt.Errorf("%s: %s is no Go file", b.at, b.file)
	}
	source, err := read(b.file)
	if err != nil {
		return fmt.Errorf("%s: %w", b.at, err)
	}
	want, found := codeRegion(source, b.region)
	if !found {
		return fmt.Errorf("%s: %s has no region %s", b.at, b.file, b.region)
	}
	if b.code != want {
		return fmt.Errorf("%s differs from %s %s:\n%s\nwant\n%s", b.at, b.file, b.region, b.code, want)
	}
	return nil
}

// codeRegion returns the lines between //readme:name and //readme:end.
func codeRegion(source, name string) (string, bool) {
	var region strings.Builder
	inside, indent := false, ""
	for line := range strings.Lines(source) {
		mark := strings.TrimSpace(line)
		switch {
		case mark == "//readme:"+name:
			inside = true
			indent, _, _ = strings.Cut(line, "//")
		case mark == "//readme:end" && inside:
			return strings.Trim(region.String(), "\n") + "\n", true
		case inside:
			region.WriteString(strings.TrimPrefix(line, indent))
		}
	}
	return "", false
}

func readFile(name string) (string, error) {
	text, err := os.ReadFile(name)
	return string(text), err
}

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

// docs/README.md lists ten common programs, each with a link to an example.
func TestTenProgramsRun(t *testing.T) {
	text, err := readFile("docs/README.md")
	require.NoError(t, err)
	listed := regexp.MustCompile(`(?m)^\| .+ \| \[(\w+)\.(Example\w*)\]\(\.\./(\S+_test\.go)\) \|$`).FindAllStringSubmatch(text, -1)
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

// A bound that SECURITY.md or docs/accuracy.md states is followed by the name of the test that
// checks it, in brackets. So is a difference that docs/migrating.md or a page below it states. The
// package of the test comes before the name if it is not clear:
//
//	[TestStreamsAreBounded]
//	[limiter: TestConformance, TestGroupConformance; breaker: TestGroupIsBounded]

func TestDocumentedBoundsNameExistingTests(t *testing.T) {
	tests := testsOf(t, os.DirFS("."))
	for _, page := range []string{"SECURITY.md", "docs/accuracy.md"} {
		require.Greater(t, checkNamedTests(t, page, tests), 10, page)
	}
}

func TestMigratingPagesNameExistingTests(t *testing.T) {
	tests, named := testsOf(t, os.DirFS(".")), 0
	pages, err := filepath.Glob("docs/migrating/*.md")
	require.NoError(t, err)
	for _, page := range append(pages, "docs/migrating.md") {
		named += checkNamedTests(t, page, tests)
	}
	require.Greater(t, named, 20)
}

// checkNamedTests checks the tests that a page names and returns how many there are.
func checkNamedTests(t *testing.T, page string, tests map[string][]string) int {
	t.Helper()
	text, err := readFile(page)
	require.NoError(t, err)
	named := namedTests(text)
	for _, n := range named {
		require.NoError(t, n.check(tests), page)
	}
	return len(named)
}

func TestTheBoundsCheckFindsMistakes(t *testing.T) {
	tests := map[string][]string{"TestGrows": {"window", "limiter"}, "FuzzGrows": {"stat"}}
	for text, want := range map[string]string{
		"It grows [TestGrows].":                           "",
		"It grows [window: TestGrows; stat:\nFuzzGrows].": "",
		"It grows [window: TestGrows, stat: FuzzGrows].":  "",
		"A [link](TestGone), and [no test] [x: y].":       "",
		"It grows [TestGone].":                            "TestGone is not a test",
		"It grows [TestGrows, TestGone].":                 "TestGone is not a test",
		"It grows [breaker: TestGrows].":                  "TestGrows is a test of window, limiter, not of breaker",
		"It grows [window: TestGrows, FuzzGrows].":        "FuzzGrows is a test of stat, not of window",
		"It grows [window: TestGrows and others].":        "TestGrows and others is not a test",
	} {
		var err error
		for _, n := range namedTests(text) {
			if err == nil {
				err = n.check(tests)
			}
		}
		if want == "" {
			require.NoError(t, err, text)
			continue
		}
		require.EqualError(t, err, want, text)
	}
}

// namedTest is a test that a page names, with its package if the page names it too.
type namedTest struct{ pkg, name string }

var inBrackets = regexp.MustCompile(`\[([^\[\]]*\b(?:Test|Fuzz)[A-Z][^\[\]]*)\]`)

func namedTests(page string) (list []namedTest) {
	for _, found := range inBrackets.FindAllStringSubmatch(page, -1) {
		pkg := ""
		for _, one := range strings.FieldsFunc(strings.Join(strings.Fields(found[1]), " "), func(r rune) bool { return r == ',' || r == ';' }) {
			name := strings.TrimSpace(one)
			if before, after, ok := strings.Cut(name, ":"); ok {
				pkg, name = strings.TrimSpace(before), strings.TrimSpace(after)
			}
			list = append(list, namedTest{pkg, name})
		}
	}
	return list
}

func (n namedTest) check(tests map[string][]string) error {
	pkgs, ok := tests[n.name]
	if !ok {
		return fmt.Errorf("%s is not a test", n.name)
	}
	for _, pkg := range pkgs {
		if n.pkg == "" || n.pkg == pkg {
			return nil
		}
	}
	return fmt.Errorf("%s is a test of %s, not of %s", n.name, strings.Join(pkgs, ", "), n.pkg)
}

var testFunction = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Z]\w*)\(`)

// testsOf returns, for each test name, the folders that have such a test.
func testsOf(t *testing.T, repository fs.FS) map[string][]string {
	t.Helper()
	tests := map[string][]string{}
	require.NoError(t, fs.WalkDir(repository, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, err := fs.ReadFile(repository, name)
		for _, found := range testFunction.FindAllStringSubmatch(string(text), -1) {
			tests[found[1]] = append(tests[found[1]], path.Dir(name))
		}
		return err
	}))
	return tests
}

// Documents and comments of Go files may only use qualified names that exist, such as
// breaker.Config.Classify.
func TestPagesNameExistingIdentifiers(t *testing.T) {
	exported, named := exportedNames(t)
	pages := append(docs(t), "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md")
	for _, pattern := range []string{"exporters/prom/mixin/*.yml", "exporters/prom/mixin/*.json"} {
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
		if page == "docs/renamed.md" { // the first column has the old names
			text = regexp.MustCompile(`(?m)^\| .*? \| `).ReplaceAllString(text, "")
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

// listenPattern matches code that opens a listener. It does not match comments.
var listenPattern = regexp.MustCompile(`(?m)^[^/\n]*\b(?:Listen(?:Config|Packet|TCP|UDP|Unix|AndServe|AndServeTLS)?|httptest\.NewServer)\b`)

func TestTheLibraryOpensNoListener(t *testing.T) {
	for _, module := range libraryDirs(t) {
		for pkg, words := range goList(t, module, "-e", "-f", "{{.ImportPath}} {{.Dir}} {{join .GoFiles \" \"}}") {
			if strings.Contains(pkg, "/internal/redistest") { // starts servers for tests
				continue
			}
			for _, file := range words[1:] {
				text, err := readFile(filepath.Join(words[0], file))
				require.NoError(t, err)
				require.Empty(t, listenPattern.FindString(text), "%s/%s", pkg, file)
			}
		}
	}
}

// Tests that sleep in real time are slow and flaky. Files that sleep must import testing/synctest.
func TestOnlySynctestTestsSleep(t *testing.T) {
	const call = "time." + "Sleep("
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, err := readFile(name)
		if strings.Contains(text, call) && !strings.Contains(text, `"testing/synctest"`) {
			t.Errorf("%s sleeps but does not import testing/synctest", name)
		}
		return err
	})
	require.NoError(t, err)
}

var (
	usesAction   = regexp.MustCompile(`(?m)^\s*(?:- )?uses:(.*)$`)
	pinnedAction = regexp.MustCompile(`^ [\w-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
)

// Workflows must pin actions to commits, because tags can be moved.
func TestActionsArePinnedToCommits(t *testing.T) {
	files, err := filepath.Glob(".github/workflows/*.y*ml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := readFile(file)
		require.NoError(t, err)
		uses := usesAction.FindAllStringSubmatch(text, -1)
		require.NotEmpty(t, uses, file)
		for _, u := range uses {
			require.Regexp(t, pinnedAction, u[1], file)
		}
	}
}

func TestDependabotLooksAfterEveryModule(t *testing.T) {
	text, err := readFile(".github/dependabot.yml")
	require.NoError(t, err)
	var listed []string
	for _, match := range regexp.MustCompile(`(?m)^      - (/\S*)$`).FindAllStringSubmatch(text, -1) {
		listed = append(listed, match[1])
	}
	var want []string
	for _, dir := range moduleDirs(t) {
		want = append(want, path.Join("/", dir))
	}
	require.ElementsMatch(t, want, listed)
}
