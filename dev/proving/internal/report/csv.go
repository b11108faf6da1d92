package report

import (
	"encoding/csv"
	"io"
	"strconv"

	"github.com/weir-go/weir/dev/proving/internal/scenario"
)

// WriteFigures writes every figure of every row as CSV: the median over the seeds, the lowest and
// the highest. NaN means that there is no such figure, and +Inf that the time never came.
func (p Page) WriteFigures(w io.Writer) error {
	out := csv.NewWriter(w)
	if err := out.Write([]string{"scenario", "guard", "figure", "unit", "median", "lowest", "highest"}); err != nil {
		return err
	}
	for _, r := range p.Results {
		for _, row := range r.Rows {
			for _, c := range scenario.AllColumns() {
				s := row.Spread(c)
				if err := out.Write([]string{r.Scenario.Name, row.Guard.Name, c.Title, c.Unit, number(s.Median), number(s.Low), number(s.High)}); err != nil {
					return err
				}
			}
		}
	}
	out.Flush()
	return out.Error()
}

// number formats a number with at most six digits.
func number(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
