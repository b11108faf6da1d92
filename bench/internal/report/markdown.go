package report

import "strings"

// table is a Markdown table. The first column is aligned to the left. Other columns are aligned to the left
// if they hold words, and to the right if they hold figures.
type table struct {
	words bool
	head  []string
	rows  [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) String() string {
	var b strings.Builder
	line := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	line(t.head)
	rule := make([]string, len(t.head))
	for i := range rule {
		rule[i] = "--:"
		if i == 0 || t.words {
			rule[i] = "---"
		}
	}
	line(rule)
	for _, row := range t.rows {
		line(row)
	}
	return b.String()
}
