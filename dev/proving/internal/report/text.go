package report

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// harmMark follows the name of a library that refuses calls on a good day.
const harmMark = " †"

// Text writes a result for a terminal: a table, and the goals.
func Text(w io.Writer, r Result) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s: %s\n", r.Scenario.Name, r.Scenario.Title)
	writeColumns(&b, cells(r))
	for _, broken := range r.Broken {
		fmt.Fprintf(&b, "  %s: seed %d could not be simulated: %s\n", broken.Guard, broken.Seed, broken.Reason)
	}
	for _, v := range r.Verdicts() {
		fmt.Fprintf(&b, "  %-7s %s: %s: %s, %s\n", verdictWord(v), v.Guard, v.Goal.Text, spreadText(v.Figure), boundText(v))
	}
	if loss, ok := r.Loss(); ok {
		fmt.Fprintf(&b, "  weir loses: %s\n", lossText(loss))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// cells returns the table of a result with its head, a row per guard.
func cells(r Result) [][]string {
	all := [][]string{{"guard"}}
	for _, c := range r.Scenario.Shown {
		all[0] = append(all[0], columnHead(c))
	}
	for _, row := range r.Rows {
		name := row.Guard.Name
		if row.Guard.Peer && !row.Harmless {
			name += harmMark
		}
		line := []string{name}
		for _, c := range r.Scenario.Shown {
			line = append(line, spreadText(row.Spread(c)))
		}
		all = append(all, line)
	}
	return all
}

// writeColumns writes a table whose first column is aligned to the left, and the others to the
// right.
func writeColumns(b *strings.Builder, table [][]string) {
	widths := make([]int, len(table[0]))
	for _, line := range table {
		for i, cell := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, line := range table {
		for i, cell := range line {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				b.WriteString("  " + cell + pad)
			} else {
				b.WriteString("  " + pad + cell)
			}
		}
		b.WriteString("\n")
	}
}

func lossText(l Loss) string {
	guard := "with " + l.Guard
	if l.Guard == "none" {
		guard = "without any guard"
	}
	unit := ""
	if l.Column.Unit != "" {
		unit = " " + l.Column.Unit
	}
	return fmt.Sprintf("%s is %s%s, and %s%s %s", l.Column.Title, figure(l.Own), unit, figure(l.Best), unit, guard)
}
