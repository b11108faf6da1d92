package weir_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The tables of docs/migrating have the names of another library in the first column, and those of
// weir in the second.

func TestMigratingTablesNameExistingIdentifiers(t *testing.T) {
	byPackage, _ := exportedNames(t)
	exported := map[string]bool{}
	for _, names := range byPackage {
		for name := range names {
			exported[name] = true
		}
	}
	pages, err := filepath.Glob("docs/migrating/*.md")
	require.NoError(t, err)
	found := 0
	for _, page := range pages {
		text, err := readFile(page)
		require.NoError(t, err)
		for _, name := range namesOfWeir(text) {
			found++
			if !exported[name] {
				t.Errorf("%s names %s, which does not exist", page, name)
			}
		}
	}
	require.Greater(t, found, 200)
}

func TestTheCheckOfMigratingTablesReadsNames(t *testing.T) {
	const page = "| Peer | weir |\n|---|---|\n| `Gone` | `breaker.New`, `Gate.Hold(d)`, `Trip: f` and `context.WithTimeout` | `Gone` |\n\nAnd `Gone`.\n"
	require.Equal(t, []string{"New", "Gate", "Hold", "Trip"}, namesOfWeir(page))
}

var (
	codeSpan   = regexp.MustCompile("`([^`]+)`")
	exportedID = regexp.MustCompile(`\b([A-Z]\w*)`)
	standardID = regexp.MustCompile(`\b(?:context|errors|http|slog|synctest|time)\.\w+`)
)

// namesOfWeir returns the exported identifiers in the second column of the tables of a page.
func namesOfWeir(page string) (names []string) {
	for line := range strings.Lines(page) {
		cells := strings.Split(line, " | ")
		if !strings.HasPrefix(line, "|") || len(cells) < 2 {
			continue
		}
		for _, span := range codeSpan.FindAllStringSubmatch(cells[1], -1) {
			names = append(names, exportedID.FindAllString(standardID.ReplaceAllString(span[1], ""), -1)...)
		}
	}
	return names
}
