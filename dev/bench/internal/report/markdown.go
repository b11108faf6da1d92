package report

import (
	"strings"
	"unicode/utf8"
)

// table is a Markdown table. The first column is aligned to the left. Other columns are aligned to
// the left if they hold words, and to the right if they hold figures.
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

// wrapLongLines breaks lines of more than 100 characters at spaces, except in tables. In a list,
// the further lines of an item are indented.
func wrapLongLines(text string) string {
	const most = 100
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "|") || utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) <= most {
			b.WriteString(line)
			continue
		}
		separator := "\n"
		if strings.HasPrefix(line, "- ") {
			separator = "\n  "
		}
		length := 0
		for i, word := range strings.Fields(line) {
			n := utf8.RuneCountInString(word)
			switch {
			case i == 0:
			case length+1+n > most:
				b.WriteString(separator)
				length = len(separator) - 1
			default:
				b.WriteByte(' ')
				length++
			}
			b.WriteString(word)
			length += n
		}
		b.WriteByte('\n')
	}
	return b.String()
}
