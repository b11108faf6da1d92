package report

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/weir-go/weir/dev/proving/internal/scenario"
	"github.com/weir-go/weir/dev/proving/internal/sim"
)

// Matrix lists the simulations to run: each scenario with each guard and each seed.
type Matrix struct {
	Scenarios []scenario.Scenario
	Guards    []sim.Maker
	Seeds     []uint64
	// Harmless names the guards that reach the goals of all good days. If Harmless is nil, the good
	// days among the scenarios show which guards these are.
	Harmless []string
	// Workers is how many simulations run at a time, at least 1.
	Workers int
}

// Result holds the figures of one scenario.
type Result struct {
	Scenario scenario.Scenario
	Seeds    []uint64
	Rows     scenario.Rows
	Broken   []Broken
}

// Broken is a guard without a row, because it could not be simulated.
type Broken struct {
	Guard  string
	Seed   uint64
	Reason string
}

// Run runs everything, and calls progress after each scenario. The results are in the order of the
// scenarios.
func (m Matrix) Run(progress func(Result)) []Result {
	results := make([]Result, len(m.Scenarios))
	harmless := newHarmless(m)
	for i := range m.order() {
		results[i] = m.run(m.Scenarios[i])
		harmless.learnGoodDay(results[i])
		harmless.mark(results[i].Rows)
		progress(results[i])
	}
	for _, r := range results { // the good days themselves
		harmless.mark(r.Rows)
	}
	return results
}

// order yields the good days first, because the others need to know which guards are harmless.
func (m Matrix) order() func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for _, good := range []bool{true, false} {
			for i, s := range m.Scenarios {
				if s.GoodDay == good && !yield(i) {
					return
				}
			}
		}
	}
}

// guardsIn returns the guards that have a row in a scenario.
func (m Matrix) guardsIn(s scenario.Scenario) []sim.Maker {
	if len(m.Seeds) == 0 {
		return m.Guards
	}
	clients := s.World(sim.NewDraw(m.Seeds[0])).Clients
	retries := slices.ContainsFunc(clients, func(c sim.Client) bool { return c.Retries > 0 && !c.ObeysRetryAfter })
	return slices.DeleteFunc(slices.Clone(m.Guards), func(g sim.Maker) bool { return g.Retries && !retries })
}

// run runs one scenario.
func (m Matrix) run(s scenario.Scenario) Result {
	m.Guards = m.guardsIn(s)
	type job struct{ guard, seed int }
	runs := make([][]sim.Figures, len(m.Guards))
	broken := make([][]error, len(m.Guards))
	for g := range m.Guards {
		runs[g], broken[g] = make([]sim.Figures, len(m.Seeds)), make([]error, len(m.Seeds))
	}
	jobs := make(chan job)
	var workers sync.WaitGroup
	for range max(m.Workers, 1) {
		workers.Go(func() {
			for j := range jobs {
				f, err := simulate(s, m.Guards[j.guard], m.Seeds[j.seed])
				if j.seed > 0 {
					f.Series = nil // the chart shows the first seed
				}
				runs[j.guard][j.seed], broken[j.guard][j.seed] = f, err
			}
		})
	}
	for g := range m.Guards {
		for seed := range m.Seeds {
			jobs <- job{g, seed}
		}
	}
	close(jobs)
	workers.Wait()
	return m.collect(s, runs, broken)
}

func (m Matrix) collect(s scenario.Scenario, runs [][]sim.Figures, broken [][]error) Result {
	r := Result{Scenario: s, Seeds: m.Seeds}
	for g, maker := range m.Guards {
		row := scenario.Row{Guard: maker, Runs: runs[g]}
		for i, err := range broken[g] {
			if err != nil {
				r.Broken = append(r.Broken, Broken{maker.Name, m.Seeds[i], err.Error()})
				row.Runs = nil
				break
			}
		}
		if row.Runs != nil {
			r.Rows = append(r.Rows, row)
		}
	}
	return r
}

// simulate runs one guard in the world of one seed. It returns an error if the guard panics or
// never returns.
func simulate(s scenario.Scenario, maker sim.Maker, seed uint64) (f sim.Figures, err error) {
	defer func() {
		if p := recover(); p != nil {
			reason, _, _ := strings.Cut(fmt.Sprint(p), "\n")
			err = fmt.Errorf("%s", reason)
		}
	}()
	return sim.Run(s.World(sim.NewDraw(seed)), maker, seed), nil
}

// harmless records which guards reach the goals of all good days.
type harmless struct {
	known map[string]bool
	fixed bool
}

func newHarmless(m Matrix) harmless {
	h := harmless{known: map[string]bool{}, fixed: m.Harmless != nil}
	for _, g := range m.Guards {
		h.known[g.Name] = !h.fixed
	}
	for _, name := range m.Harmless {
		h.known[name] = true
	}
	return h
}

// learnGoodDay takes the result of a good day into account.
func (h harmless) learnGoodDay(r Result) {
	if h.fixed || !r.Scenario.GoodDay {
		return
	}
	for _, row := range r.Rows {
		for _, goal := range r.Scenario.Goals {
			h.known[row.Guard.Name] = h.known[row.Guard.Name] && goal.Reached(row, r.Rows)
		}
	}
	for _, b := range r.Broken {
		h.known[b.Guard] = false
	}
}

func (h harmless) mark(rows scenario.Rows) {
	for i := range rows {
		rows[i].Harmless = h.known[rows[i].Guard.Name]
	}
}
