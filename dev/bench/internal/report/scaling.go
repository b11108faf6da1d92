package report

import (
	"fmt"

	"github.com/weir-go/weir/dev/bench/internal/scale"
	"github.com/weir-go/weir/internal/chart"
)

// Table returns the costs of an experiment, with the stated and the measured growth of each line.
func (s Scaling) Table() string {
	t := table{head: []string{s.Y + " at"}}
	for _, size := range s.Sizes {
		t.head = append(t.head, chart.Number(float64(size)))
	}
	t.head = append(t.head, "stated", "slope", "")
	for _, c := range s.Curves {
		t.add(scalingRow(c, len(s.Sizes))...)
	}
	return t.String()
}

func scalingRow(c scale.Curve, sizes int) []string {
	cells := []string{c.Name}
	for i := range sizes {
		cell := ""
		if i < len(c.Points) {
			cell = formatNumber(c.Points[i].Cost)
		}
		cells = append(cells, cell)
	}
	agrees := "agrees"
	if !c.Says.Agrees(c.Points) {
		agrees = "DOES NOT AGREE"
	}
	return append(cells, c.Says.String(), fmt.Sprintf("%.2f", c.Says.Slope(c.Points)), agrees)
}

// Disagree describes each curve that does not grow as stated.
func (r Results) Disagree() (faults []string) {
	for _, s := range r.Scaling {
		for _, c := range s.Curves {
			if !c.Says.Agrees(c.Points) {
				faults = append(faults, fmt.Sprintf("%s, %s: slope %.2f, stated %s", s.Title, c.Name, c.Says.Slope(c.Points), c.Says))
			}
		}
	}
	return faults
}
