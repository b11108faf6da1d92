package report

import "github.com/weir-go/weir/internal/chart"

// Table returns the costs of an experiment.
func (s Scaling) Table() string {
	t := table{head: []string{s.Y + ", at " + s.X}}
	for _, size := range s.Sizes {
		t.head = append(t.head, chart.Number(float64(size)))
	}
	for _, c := range s.Curves {
		cells := []string{c.Name}
		for _, ns := range c.Costs {
			cells = append(cells, formatNumber(ns))
		}
		for len(cells) < len(t.head) {
			cells = append(cells, "")
		}
		t.add(cells...)
	}
	return t.String()
}
