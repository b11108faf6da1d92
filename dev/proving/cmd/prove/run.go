package main

import (
	"runtime"
	"sync"

	"github.com/weir-go/weir/dev/proving/internal/config"
	"github.com/weir-go/weir/dev/proving/internal/scenario"
	"github.com/weir-go/weir/dev/proving/internal/sim"
)

// run runs all guards with all seeds, as many at once as there are processors.
func run(c config.Config) scenario.Rows {
	rows := make(scenario.Rows, len(c.Guards))
	var wg sync.WaitGroup
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, m := range c.Guards {
		rows[i] = scenario.Row{Guard: m, Runs: make([]sim.Figures, c.Seeds)}
		for k := range c.Seeds {
			free <- struct{}{}
			wg.Go(func() {
				defer func() { <-free }()
				rows[i].Runs[k] = sim.Run(c.World, m, c.Seed+k)
			})
		}
	}
	wg.Wait()
	return rows
}
