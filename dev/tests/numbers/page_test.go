package numbers

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// TestTablesOfThePages compares the tables of the pages with computed ones. A comment above each
// table names it:
//
//	<!-- table: trips -->
func TestTablesOfThePages(t *testing.T) {
	for name, tables := range pages {
		text, err := os.ReadFile("../../../docs/" + name)
		require.NoError(t, err)
		page := string(text)
		for title, table := range tables {
			_, rest, found := strings.Cut(page, "<!-- table: "+title+" -->\n")
			require.True(t, found, "%s has no table %s", name, title)
			got, _, _ := strings.Cut(rest, "\n\n")
			var want string
			synctest.Test(t, func(*testing.T) { want = table() })
			require.Equal(t, want, strings.TrimSpace(got)+"\n", "%s, table %s: want\n%s", name, title, want)
		}
		require.Equal(t, len(tables), strings.Count(page, "<!-- table: "), "tables of %s", name)
	}
}

var pages = map[string]map[string]func() string{
	"numbers.md":  {"trips": tripsTable, "runs": runsTable, "openings": openingsTable, "outages": outagesTable, "probes": probesTable, "sequential": sequentialTable, "refusals": refusalsTable, "alerts": alertsTable, "cooldowns": cooldownsTable},
	"accuracy.md": {"memory": memoryTable},
}

// row formats one line of a table.
func row(cells ...any) string {
	var b strings.Builder
	for _, c := range cells {
		fmt.Fprintf(&b, "| %v ", c)
	}
	return b.String() + "|\n"
}

func headerRow(cells ...any) string {
	return row(cells...) + strings.Repeat("|---", len(cells)) + "|\n"
}

// formatProbability formats a probability.
func formatProbability(p float64) string {
	switch {
	case p < 0.95e-12:
		return "< 10⁻¹²"
	case p < 0.0001:
		digit, exp, _ := strings.Cut(fmt.Sprintf("%.0e", p), "e-")
		return digit + "·10⁻" + superscript(strings.TrimPrefix(exp, "0"))
	case p < 0.01:
		return fmt.Sprintf("%.2f %%", 100*p)
	case p < 0.9995:
		return fmt.Sprintf("%.1f %%", 100*p)
	}
	return "> 99.9 %"
}

func superscript(digits string) string {
	return strings.NewReplacer("0", "⁰", "1", "¹", "2", "²", "3", "³", "4", "⁴", "5", "⁵", "6", "⁶", "7", "⁷", "8", "⁸", "9", "⁹").Replace(digits)
}
