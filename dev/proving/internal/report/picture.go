package report

import (
	"slices"
	"time"

	"github.com/weir-go/weir/dev/proving/internal/guards"
	"github.com/weir-go/weir/dev/proving/internal/sim"
	"github.com/weir-go/weir/internal/chart"
)

// drawnGuards are the guards with a chart, in order.
var drawnGuards = []string{
	"none", guards.Weir, guards.Recommended, "gobreaker, tuned", "failsafe limiter", "oracle",
}

// Picture returns the chart of a result: a panel per main guard, with the calls of the first seed.
func Picture(r Result) chart.Panels {
	p := chart.Panels{Title: r.Scenario.Title, X: "seconds", Y: "calls per second"}
	if len(r.Seeds) == 0 {
		return p
	}
	world := r.Scenario.World(sim.NewDraw(r.Seeds[0]))
	for _, name := range drawnGuards {
		row, ok := r.row(name)
		if !ok || !slices.ContainsFunc(row.Runs[0].Series, func(s sim.Second) bool { return s.Offered > 0 }) {
			continue
		}
		p.Panels = append(p.Panels, chart.Panel{
			Name: name, Lines: lines(row.Runs[0].Series, world),
			From: world.Trouble.From.Seconds(), To: world.Trouble.To.Seconds(),
		})
	}
	return p
}

// lines returns the curves of a series, from the end of the warmup to the last whole second. Each
// point is the mean of as many seconds as it takes to have at most 100 points.
func lines(series []sim.Second, w sim.World) []chart.Line {
	const most = 100
	step := (len(series) + most - 1) / most
	first := int((w.Warmup + time.Second - 1) / time.Second)
	series = series[:min(len(series), int(w.For/time.Second))]
	all := []chart.Line{{Name: "offered"}, {Name: "failed"}, {Name: "answered"}, {Name: "refused"}}
	for from := first; from < len(series); from += step {
		part := series[from:min(from+step, len(series))]
		var sum sim.Second
		for _, s := range part {
			sum.Offered += s.Offered
			sum.Failed += s.Failed
			sum.Good += s.Good
			sum.Refused += s.Refused
		}
		for i, n := range []int{sum.Offered, sum.Failed, sum.Good, sum.Refused} {
			all[i].Points = append(all[i].Points, chart.Point{
				X: float64(from) + float64(len(part))/2, Y: float64(n) / float64(len(part)),
			})
		}
	}
	return all
}
