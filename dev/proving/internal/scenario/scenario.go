// Package scenario describes the situations in which guards are compared. Each is one function that
// reads as a description: service, clients, fault, and what is looked at.
package scenario

import "github.com/weir-go/weir/dev/proving/internal/sim"

// Scenario is one situation.
type Scenario struct {
	// Name is short and unique, in words with hyphens, such as "lost-capacity".
	Name string
	// Title and Text tell a reader what happens and what to look at.
	Title, Text string
	// World draws the parameters of one seed: most of them lie within 30 % of what Text says.
	World func(sim.Draw) sim.World
	// Shown are the figures of the table, in order. The first is the one that matters most.
	Shown []Column
	// Goals are bounds that the rows of weir must meet.
	Goals []Goal
	// GoodDay is true for a service that is well. A library that misses a goal of such a scenario
	// is not a peer in the others.
	GoodDay bool
	// Quick is true for a scenario of the short run.
	Quick bool
}

// Goal is a bound on one figure of a row, compared with those of other rows.
type Goal struct {
	// Text is the goal as users read it.
	Text string
	// Recommended is true for a goal that binds the recommended gate alone.
	Recommended bool
	// Figure is the column whose median over all seeds is bounded.
	Figure Column
	// Bound returns the least median that reaches the goal, or the most if less is better.
	Bound func(Rows) float64
}

// Reached reports whether a row reaches the goal among all rows of its scenario.
func (g Goal) Reached(own Row, all Rows) bool {
	median, bound := own.Spread(g.Figure).Median, g.Bound(all)
	if g.Figure.More {
		return median >= bound-rounding
	}
	return median <= bound+rounding
}

// rounding is the tolerated error of floating-point arithmetic.
const rounding = 1e-9

// All returns all scenarios, in the order of the page.
func All() []Scenario {
	all := []Scenario{
		outage(), lostCapacity(), hang(), comeBack(), blip(), everyFiveSeconds(), everyMinute(),
	}
	all = append(all, goodDays()...)
	all = append(all,
		hopelessDeadlines(), hopelessHang(), suspended(), flapping(), badHost(), fleetLostCapacity(), fleetComeBack(),
		herdOfRetriers(), herdOfBreakers(), coldCache(), abandonedQueue(), metastable(),
		retriesWithBudget(), retriesWithoutBudget(), drainedQuota(), decayedStreak())
	all = append(all, semian()...)
	return append(all,
		limitCreeps(), nightAndDay(), bimodalMix(), collectorPauses(), deploymentSlower(), deploymentFaster(),
		growingBaseline(), steadyProbes())
}
