package weir_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// A package comment is a page of at most maxPage lines. Longer texts belong in docs. If the package
// has a Config, the page has one table of its fields, a preformatted block whose heading names the
// type:
//
//	Config    Default  Change it
//	MinCalls  20       if the service gets few calls; a row may
//	                   have several lines
//
// A package with several Configs has a table of the one that is named Config, or of the one that
// its first program uses.
const maxPage = 120

const maxTableWidth = 96

func TestPackageCommentsHaveATableOfTheConfig(t *testing.T) {
	tables := 0
	for _, dir := range publicDirs() {
		p := parsePage(t, dir)
		if p.name == "" || p.name == "main" { // no Go code, or a program
			continue
		}
		for _, fault := range p.faults() {
			t.Errorf("package comment of %s: %s", dir, fault)
		}
		tables += len(p.tables())
	}
	require.Greater(t, tables, 10)
}

func TestPackageCommentsNameExistingDocuments(t *testing.T) {
	found := 0
	for _, dir := range publicDirs() {
		for _, name := range regexp.MustCompile(`\bdocs/\w+\.md`).FindAllString(parsePage(t, dir).comment, -1) {
			require.FileExists(t, name, dir)
			found++
		}
	}
	require.Greater(t, found, 5)
}

func TestTheCheckOfPackageCommentsFindsMistakes(t *testing.T) {
	const config = "type Config struct {\n// A is a number. Default 0.5, or 1 if B is set.\nA float64\n// B is a name. Required.\nB string\nhidden int\n}\n"
	const table = "//\tConfig  Default   Change it\n//\tA       0.5       to open\n//\t                  later\n//\tB       required  never\n"
	cases := map[string]struct{ comment, code, want string }{
		"right":               {table, config, ""},
		"no Config":           {"// It has none.\n", "type Configuration struct{ A int }\n", ""},
		"no table":            {"// It has none.\n", config, "has 0 tables of a Config, want 1"},
		"two tables":          {table + "//\n// Again:\n//\n" + table, config, "has 2 tables of a Config, want 1"},
		"a field is missing":  {strings.Replace(table, "//\tB       required  never\n", "", 1), config, "B has 0 rows, want 1"},
		"a field twice":       {table + "//\tB       required  never\n", config, "B has 2 rows, want 1"},
		"a row without field": {table + "//\tC       0         never\n", config, "C is no field of Config"},
		"a hidden field":      {table + "//\thidden  0         never\n", config, "hidden is no field of Config"},
		"another default":     {strings.Replace(table, "0.5", "0.4", 1), config, `A has the default "0.4" in the table, but "0.5" in the comment of the field`},
		"not required":        {strings.Replace(table, "required", "none    ", 1), config, `B has the default "none" in the table, but "required" in the comment of the field`},
		"no advice":           {strings.Replace(table, "never", "", 1), config, "the row of B does not say when to change it"},
		"too wide":            {strings.Replace(table, "never", strings.Repeat("never ", 20), 1), config, "a line of the table is 137 columns wide, want at most 96"},
		"no default":          {table, strings.Replace(config, "Default 0.5", "It is 0.5", 1), "A of Config has 0 sentences that begin with Default or Required, want 1"},
		"two defaults":        {table, strings.Replace(config, "name.", "name. Default x.", 1), "B of Config has 2 sentences that begin with Default or Required, want 1"},
		"another Config":      {table, config + "type OtherConfig struct {\n// C is a number.\nC int\n}\n", "C of OtherConfig has 0 sentences that begin with Default or Required, want 1"},
		"not the main Config": {strings.Replace(table, "Config ", "ZConfig", 1), config + strings.Replace(config, "Config", "ZConfig", 1), "has a table of ZConfig, want one of Config"},
		"the only Config":     {strings.Replace(table, "Config ", "ZConfig", 1), strings.Replace(config, "Config", "ZConfig", 1), ""},
		"a Config of nothing": {strings.Replace(table, "Config ", "YConfig", 1), strings.Replace(config, "Config", "ZConfig", 1), "has a table of YConfig, which does not exist"},
		"too long":            {table + strings.Repeat("//\n// More.\n", 60), config, "has 126 lines, want at most 120"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := packagePage{configs: map[string][]configField{}}
			p.add(t, "p.go", "// Package p is a package.\n//\n"+c.comment+"package p\n\n"+c.code)
			var want []string
			if c.want != "" {
				want = []string{c.want}
			}
			require.Equal(t, want, p.faults())
		})
	}
}

// packagePage is the comment of a package, with the fields of its exported Configs.
type packagePage struct {
	name, comment string
	configs       map[string][]configField
}

type configField struct{ name, comment string }

func parsePage(t *testing.T, dir string) packagePage {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	p := packagePage{configs: map[string][]configField{}}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := readFile(name)
		require.NoError(t, err)
		p.add(t, name, text)
	}
	return p
}

func (p *packagePage) add(t *testing.T, name, text string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments)
	require.NoError(t, err)
	p.name = file.Name.Name
	p.comment += file.Doc.Text()
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		fields, ok := spec.Type.(*ast.StructType)
		if !ok || !spec.Name.IsExported() || !strings.HasSuffix(spec.Name.Name, "Config") {
			return false
		}
		for _, f := range fields.Fields.List {
			for _, id := range f.Names {
				if id.IsExported() {
					comment := strings.Join(strings.Fields(f.Doc.Text()), " ")
					p.configs[spec.Name.Name] = append(p.configs[spec.Name.Name], configField{id.Name, comment})
				}
			}
		}
		return false
	})
}

// configTable is the table of a Config. Its rows may have several lines.
type configTable struct {
	config string
	rows   []configRow
	width  int // of the widest line
}

type configRow struct{ name, value, advice string }

var tableHeading = regexp.MustCompile(`^\t(\w*Config) +Default +Change it$`)

// tables returns the tables of Configs in the comment.
func (p *packagePage) tables() (all []configTable) {
	inside := false
	var second, third int // columns
	for line := range strings.Lines(p.comment) {
		line = strings.TrimRight(line, "\n ")
		text, preformatted := strings.CutPrefix(line, "\t")
		heading := tableHeading.FindStringSubmatch(line)
		switch {
		case heading != nil:
			inside = true
			second, third = strings.Index(text, "Default"), strings.Index(text, "Change it")
			all = append(all, configTable{config: heading[1]})
		case !preformatted:
			inside = false
		case inside:
			table := &all[len(all)-1]
			table.addLine(text, second, third)
		}
	}
	return all
}

func (t *configTable) addLine(text string, second, third int) {
	t.width = max(t.width, utf8.RuneCountInString(text))
	columns := []rune(text + strings.Repeat(" ", third))
	cell := func(from, to int) string { return strings.TrimSpace(string(columns[from:to])) }
	name, value, advice := cell(0, second), cell(second, third), cell(third, len(columns))
	if name != "" || len(t.rows) == 0 {
		t.rows = append(t.rows, configRow{name, value, advice})
		return
	}
	last := &t.rows[len(t.rows)-1]
	last.value = strings.TrimSpace(last.value + " " + value)
	last.advice = strings.TrimSpace(last.advice + " " + advice)
}

func (p *packagePage) faults() (all []string) {
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	if n := strings.Count(p.comment, "\n"); n > maxPage {
		add("has %d lines, want at most %d", n, maxPage)
	}
	for config, fields := range p.configs {
		for _, f := range fields {
			if n := len(f.defaults()); n != 1 {
				add("%s of %s has %d sentences that begin with Default or Required, want 1", f.name, config, n)
			}
		}
	}
	tables := p.tables()
	if len(p.configs) == 0 && len(tables) == 0 || len(all) > 0 {
		return all
	}
	if len(tables) != 1 {
		return append(all, fmt.Sprintf("has %d tables of a Config, want 1", len(tables)))
	}
	table := tables[0]
	fields, ok := p.configs[table.config]
	if !ok {
		add("has a table of %s, which does not exist", table.config)
		return all
	}
	if _, ok := p.configs["Config"]; ok && table.config != "Config" {
		add("has a table of %s, want one of Config", table.config)
	}
	return append(all, table.faults(fields)...)
}

func (t *configTable) faults(fields []configField) (all []string) {
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	if t.width > maxTableWidth {
		add("a line of the table is %d columns wide, want at most %d", t.width, maxTableWidth)
	}
	found := map[string]int{}
	for _, row := range t.rows {
		found[row.name]++
		if row.advice == "" {
			add("the row of %s does not say when to change it", row.name)
		}
	}
	for _, f := range fields {
		if n := found[f.name]; n != 1 {
			add("%s has %d rows, want 1", f.name, n)
		}
		for _, row := range t.rows {
			if want := f.defaults()[0]; row.name == f.name && row.value != want {
				add("%s has the default %q in the table, but %q in the comment of the field", f.name, row.value, want)
			}
		}
		delete(found, f.name)
	}
	for name := range found {
		add("%s is no field of %s", name, t.config)
	}
	return all
}

// defaultEnd ends the default in a sentence such as "Default 5m, or Cooldown if that is longer."
var defaultEnd = regexp.MustCompile(`[,:;] | (?:if|for|unless|with) |\.$`)

// defaults returns the default of the field, or "required", as its comment says it in a sentence of
// its own. More or less than one result is a fault of the comment.
func (f configField) defaults() (all []string) {
	for sentence := range strings.SplitSeq(f.comment, ". ") {
		text, ok := strings.CutPrefix(sentence, "Default ")
		if !ok && strings.HasPrefix(sentence, "Required") {
			text, ok = "required"+strings.TrimPrefix(sentence, "Required"), true
		}
		if ok {
			all = append(all, defaultEnd.Split(text, 2)[0])
		}
	}
	return all
}
