package main

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/weir-go/weir/dev/proving/internal/config"
	"github.com/weir-go/weir/dev/proving/internal/scenario"
	"github.com/weir-go/weir/internal/chart"
)

// printTable prints one line per figure and one column per guard, because there are more figures
// than fit beside each other.
func printTable(out io.Writer, c config.Config, s scenario.Scenario, rows scenario.Rows) error {
	fmt.Fprintf(out, "%s\n%d runs of %v for each guard, with seeds from %d\n\n", s.Title, c.Seeds, c.World.For, c.Seed)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintf(w, "\t%s", r.Guard.Name)
	}
	fmt.Fprintln(w)
	for _, column := range s.Shown {
		fmt.Fprint(w, strings.TrimSpace(column.Title+" "+column.Unit))
		for _, r := range rows {
			fmt.Fprintf(w, "\t%s", spreadText(r.Spread(column)))
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}

// spreadText returns a median with its range.
func spreadText(s scenario.Spread) string {
	switch {
	case math.IsNaN(s.Median):
		return "–"
	case s.Low == s.High:
		return numberText(s.Median)
	}
	return fmt.Sprintf("%s (%s–%s)", numberText(s.Median), numberText(s.Low), numberText(s.High))
}

// numberText returns three digits, or "never" for a time that did not come.
func numberText(x float64) string {
	switch {
	case math.IsInf(x, 1):
		return "never"
	case math.Abs(x) >= 100:
		return strconv.FormatFloat(math.Round(x), 'f', -1, 64)
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}

// panels draws a panel for each guard: the calls of each second by how they ended, as the mean of
// all seeds.
func panels(c config.Config, rows scenario.Rows) chart.Panels {
	p := chart.Panels{Title: c.Title, X: "seconds", Y: "calls per second"}
	for _, r := range rows {
		panel := chart.Panel{Name: r.Guard.Name, From: c.World.Trouble.From.Seconds(), To: c.World.Trouble.To.Seconds()}
		panel.Lines = []chart.Line{{Name: "offered"}, {Name: "good"}, {Name: "refused"}, {Name: "failed"}}
		for second := range r.Runs[0].Series {
			var sums [4]int
			for _, f := range r.Runs {
				s := f.Series[second]
				for i, n := range []int{s.Offered, s.Good, s.Refused, s.Failed} {
					sums[i] += n
				}
			}
			for i, sum := range sums {
				at := chart.Point{X: float64(second), Y: float64(sum) / float64(len(r.Runs))}
				panel.Lines[i].Points = append(panel.Lines[i].Points, at)
			}
		}
		p.Panels = append(p.Panels, panel)
	}
	return p
}
