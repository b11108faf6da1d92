package report

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

// Protection is what docs/protection.md says of how well guards protect, and whom they harm.
type Protection struct {
	Goals string // a sentence
	Harm  string // the first columns of a table
}

var (
	goalsLine = regexp.MustCompile(`(?m)^\d+ of \d+ goals are reached\.$`)
	harmTable = regexp.MustCompile(`(?m)^\| guard \| judged \| harms \|.*\n(\|.*\n)+`)
)

// harmColumns is how many columns of the table are shown.
const harmColumns = 5

// ReadProtection reads the page.
func ReadProtection(name string) (p Protection, err error) {
	page, err := os.ReadFile(name)
	if err != nil {
		return p, err
	}
	p.Goals = string(goalsLine.Find(page))
	for line := range strings.Lines(string(harmTable.Find(page))) {
		cells := strings.Split(line, "|")
		if len(cells) <= harmColumns {
			return p, fmt.Errorf("%s: the table of harm has a line of %d cells: %s", name, len(cells), line)
		}
		p.Harm += strings.Join(cells[:harmColumns+1], "|") + "|\n"
	}
	if p.Goals == "" || p.Harm == "" {
		return p, fmt.Errorf("%s does not say how many goals are reached, or whom guards harm", name)
	}
	return p, nil
}
