package scenario

import (
	"math"
	"slices"

	"github.com/weir-go/weir/dev/proving/internal/sim"
)

// Row holds the figures of one guard in a scenario, over all seeds.
type Row struct {
	Guard sim.Maker
	Runs  []sim.Figures // one per seed, in order
	// Harmless is true for a guard that reaches the goals of all good days.
	Harmless bool
}

// Spread is the median and the range of a figure over all seeds. They are NaN if no run has the
// figure.
type Spread struct{ Median, Low, High float64 }

// Spread returns the median and the range of a figure. Runs without the figure are left out.
func (r Row) Spread(c Column) Spread {
	var values []float64
	if c.Total {
		values = append(values, c.Of(sum(r.Runs)))
	} else {
		for _, f := range r.Runs {
			values = append(values, c.Of(f))
		}
	}
	values = slices.DeleteFunc(values, math.IsNaN)
	if len(values) == 0 {
		return Spread{math.NaN(), math.NaN(), math.NaN()}
	}
	slices.Sort(values)
	low, high := values[(len(values)-1)/2], values[len(values)/2]
	median := low
	if low != high { // the mean of two infinities would be NaN
		median = (low + high) / 2
	}
	return Spread{median, values[0], values[len(values)-1]}
}

// sum adds the counts of all runs.
func sum(runs []sim.Figures) (all sim.Figures) {
	for _, f := range runs {
		all.Offered += f.Offered
		all.Refused += f.Refused
		all.FalseRefusals += f.FalseRefusals
		all.OfferedUnhurried += f.OfferedUnhurried
		all.RefusedUnhurried += f.RefusedUnhurried
		all.Openings += f.Openings
		all.OpeningsMeanwhile += f.OpeningsMeanwhile
	}
	return all
}

// Rows are all rows of a scenario.
type Rows []Row

// The names of the rows that are not libraries.
const (
	none   = "none"
	oracle = "oracle"
)

// best returns the best median of a figure among the peers and the guard none. A library is a peer
// only if it is harmless.
func (rs Rows) best(c Column) float64 { return betterOf(rs.bestPeer(c), rs.median(none, c), c.More) }

// bestPeer returns the best median of a figure among the peers. If there are none, it is NaN.
func (rs Rows) bestPeer(c Column) float64 {
	best := math.NaN()
	for _, r := range rs {
		if r.Guard.Peer && r.Harmless {
			best = betterOf(best, r.Spread(c).Median, c.More)
		}
	}
	return best
}

// median returns the median of a figure of the row with a name, NaN if there is none.
func (rs Rows) median(name string, c Column) float64 {
	i := slices.IndexFunc(rs, func(r Row) bool { return r.Guard.Name == name })
	if i < 0 {
		return math.NaN()
	}
	return rs[i].Spread(c).Median
}

// betterOf returns the better of two numbers, or the one that is a number.
func betterOf(a, b float64, more bool) float64 {
	switch {
	case math.IsNaN(a):
		return b
	case math.IsNaN(b):
		return a
	case more:
		return max(a, b)
	}
	return min(a, b)
}
