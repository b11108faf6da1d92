package migrating

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each name of the other library is in the first column of a table of its page. The second column
// names the part of weir that takes its place, or says that there is none.
func TestPagesHaveTheWholeVocabulary(t *testing.T) {
	for _, library := range []string{"resilience4j", "polly"} {
		page, err := os.ReadFile("../../../docs/migrating/" + library + ".md")
		require.NoError(t, err)
		list, err := os.ReadFile("testdata/" + library + ".txt")
		require.NoError(t, err)
		require.Empty(t, missingNames(string(page), string(list)), library)
	}
}

func TestTheVocabularyCheckFindsMissingNames(t *testing.T) {
	const list = "# A comment\n\n# more\none two.three @Four five\nsix seven\n"
	const page = "| `one`, `two.three` | `x` |\n| `X.six()`, @Four | none | `seven` |\n| `five` |  |\n\n`seven`\n"
	require.Equal(t, []string{"@Four", "five", "seven"}, missingNames(page, list))
}

var (
	codeSpan = regexp.MustCompile("`([^`]+)`")
	wordSpan = regexp.MustCompile(`@?[\w.-]+`)
)

// missingNames returns the names of the list that have no row in the tables of the page.
func missingNames(page, list string) (missing []string) {
	rows := map[string]bool{}
	for line := range strings.Lines(page) {
		cells := strings.Split(strings.Trim(line, "|\n"), " | ")
		if !strings.HasPrefix(line, "|") || len(cells) < 2 || strings.TrimSpace(cells[1]) == "" {
			continue
		}
		for _, span := range codeSpan.FindAllStringSubmatch(cells[0], -1) {
			for _, word := range wordSpan.FindAllString(span[1], -1) {
				rows[word] = true
				for part := range strings.SplitSeq(word, ".") {
					rows[part] = true
				}
			}
		}
	}
	for line := range strings.Lines(list) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		for name := range strings.FieldsSeq(line) {
			if !rows[name] {
				missing = append(missing, name)
			}
		}
	}
	return missing
}
