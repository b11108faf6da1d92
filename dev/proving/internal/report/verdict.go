package report

import (
	"math"
	"slices"

	"github.com/weir-go/weir/dev/proving/internal/guards"
	"github.com/weir-go/weir/dev/proving/internal/scenario"
	"github.com/weir-go/weir/dev/proving/internal/sim"
)

// Verdict says whether a row reaches a goal.
type Verdict struct {
	Goal    scenario.Goal
	Guard   string
	Figure  scenario.Spread
	Bound   float64
	Reached bool
}

// Verdicts returns the verdicts of a result: for each goal those of the rows that it binds.
func (r Result) Verdicts() (all []Verdict) {
	for _, goal := range r.Scenario.Goals {
		for _, name := range r.bound(goal) {
			v := Verdict{Goal: goal, Guard: name, Bound: goal.Bound(r.Rows)}
			own, ok := r.row(name)
			if ok {
				v.Figure, v.Reached = own.Spread(goal.Figure), goal.Reached(own, r.Rows)
			} else {
				v.Figure = scenario.Spread{Median: math.NaN(), Low: math.NaN(), High: math.NaN()}
			}
			all = append(all, v)
		}
	}
	return all
}

// bound returns the names of the rows that a goal binds. As long as the README recommends no other
// gate than weir.Config{}, that row stands for both.
func (r Result) bound(goal scenario.Goal) []string {
	_, hasOwn := r.row(guards.Recommended)
	switch {
	case !hasOwn && !r.isBroken(guards.Recommended):
		return []string{guards.Weir}
	case goal.Recommended:
		return []string{guards.Recommended}
	}
	return []string{guards.Weir, guards.Recommended}
}

// recommended returns the row of the gate that the README recommends.
func (r Result) recommended() (scenario.Row, bool) {
	if row, ok := r.row(guards.Recommended); ok {
		return row, true
	}
	return r.row(guards.Weir)
}

func (r Result) row(name string) (scenario.Row, bool) {
	i := slices.IndexFunc(r.Rows, func(row scenario.Row) bool { return row.Guard.Name == name })
	if i < 0 {
		return scenario.Row{}, false
	}
	return r.Rows[i], true
}

func (r Result) isBroken(name string) bool {
	return slices.ContainsFunc(r.Broken, func(b Broken) bool { return b.Guard == name })
}

// Loss says that another row has a better median of the first figure than the recommended gate.
type Loss struct {
	Column    scenario.Column
	Guard     string
	Own, Best float64
}

// Loss returns the best row that is better than the recommended gate: a harmless library or none.
func (r Result) Loss() (Loss, bool) {
	own, ok := r.recommended()
	if !ok || len(r.Scenario.Shown) == 0 {
		return Loss{}, false
	}
	c := r.Scenario.Shown[0]
	loss := Loss{Column: c, Own: own.Spread(c).Median}
	loss.Best = loss.Own
	for _, row := range r.Rows {
		if !(row.Guard.Peer && row.Harmless) && row.Guard.Name != sim.None().Name {
			continue
		}
		if m := row.Spread(c).Median; isBetter(m, loss.Best, c.More) {
			loss.Guard, loss.Best = row.Guard.Name, m
		}
	}
	return loss, loss.Guard != ""
}

// isBetter reports whether a is better than b by more than 1 %, which is less than the seeds
// differ.
func isBetter(a, b float64, more bool) bool {
	if math.IsNaN(a) || math.IsNaN(b) {
		return false
	}
	if !more {
		a, b = b, a
	}
	return a > b+0.01*math.Abs(b)
}
