// Package scenario describes the situations in which guards are compared. Each is one file that reads
// as a description: service, clients, fault, and what is looked at.
package scenario

import "github.com/weir-go/weir/proving/internal/sim"

// Scenario is one situation.
type Scenario struct {
	// Name is short and unique, in words with hyphens, such as "lost-capacity".
	Name string
	// Title and Text tell a reader what happens and what to look at.
	Title, Text string
	// World draws the parameters of one seed: most of them lie within 30 % of what Text says.
	World func(sim.Draw) sim.World
	// Shown are the figures of the table, in order.
	Shown []Column
	// Goals are what rows of weir have to reach.
	Goals []Goal
	// Quick is true for a scenario of the short run.
	Quick bool
}

// Column is one figure of a table.
type Column struct {
	Title string
	// Of returns the figure of one run, negative infinity where there is none.
	Of func(sim.Figures) float64
	// Unit is "%", "s", "ms" or empty.
	Unit string
	// More is true where more is better.
	More bool
}

// Goal is a bound on one figure of a row, compared with those of other rows.
type Goal struct {
	// Text is the goal as users read it.
	Text string
	// Recommended is true for a goal that binds the recommended gate alone.
	Recommended bool
	// Reached compares the medians of a row with those of all rows of the scenario.
	Reached func(own Row, all []Row) bool
}

// Row is what one guard shows in a scenario, over all seeds.
type Row struct {
	Guard sim.Maker
	Runs  []sim.Figures // one per seed, in order
}
