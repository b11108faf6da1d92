package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weir-go/weir/dev/bench/internal/measure"
	"github.com/weir-go/weir/dev/bench/internal/memory"
	"github.com/weir-go/weir/dev/bench/internal/neighbour"
	"github.com/weir-go/weir/dev/bench/internal/report"
	"github.com/weir-go/weir/dev/bench/internal/rows"
	"github.com/weir-go/weir/dev/bench/internal/scale"
)

// writeResults measures everything and writes RESULTS.md, with its charts in the directory results.
// It writes a missed bound like any other result, and returns an error afterwards.
func writeResults(w io.Writer, s settings) error {
	r := report.Results{Machine: report.ThisMachine(), Versions: report.Peers()}
	for _, step := range []func(io.Writer, settings, *report.Results) error{runComparisons, runScaling, runNeighbours, measureMemory} {
		if err := step(w, s, &r); err != nil {
			return err
		}
	}
	if err := write(filepath.Join(s.dir, "RESULTS.md"), r.Write); err != nil {
		return err
	}
	return errors.Join(missedBounds(append(r.Outcomes, r.Fleet...), r.Memory), checkGrowth(r))
}

func runComparisons(w io.Writer, s settings, r *report.Results) (err error) {
	if r.Fleet, err = runFleetRows(w, s); err != nil {
		// first, so that a missing Redis is noticed at the start
		return err
	}
	if r.Floors, err = measureFloors(w, s, measure.Modes()...); err != nil {
		return err
	}
	r.Outcomes, err = runRows(w, s, rows.All(s.keys), measure.Modes()...)
	return err
}

func runScaling(w io.Writer, s settings, r *report.Results) error {
	if err := os.MkdirAll(filepath.Join(s.dir, "results"), 0o755); err != nil {
		return err
	}
	for _, e := range scale.All(10 * s.plan.Each) {
		e.Sizes = slices.DeleteFunc(e.Sizes, func(size int) bool { return size > s.upto })
		curves, err := e.Run()
		if err != nil {
			return err
		}
		r.Scaling = append(r.Scaling, report.Scaling{Experiment: e, Curves: curves})
		if err := write(filepath.Join(s.dir, "results", e.File+".svg"), e.Chart(curves).Write); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(w, e.Title); err != nil {
			return err
		}
	}
	return nil
}

func runNeighbours(w io.Writer, s settings, r *report.Results) error {
	var canaries []float64
	for _, c := range neighbour.All() {
		canaries = append(canaries, measure.Canary(s.plan.Each))
		cost, err := c.Run(s.plan.Each / 5)
		if err != nil {
			return err
		}
		r.Neighbours = append(r.Neighbours, report.Neighbours{Case: c, Cost: cost})
		if _, err := fmt.Fprintf(w, "%s: neighbours / far apart %.2f\n", c.Name, cost.Slowdown()); err != nil {
			return err
		}
	}
	r.Canary = measure.SpreadOf(canaries).Median
	return nil
}

func measureMemory(w io.Writer, s settings, r *report.Results) (err error) {
	r.Memory, err = measureSizes(w, s, memory.All(s.keys))
	return err
}

// checkGrowth returns an error that lists the costs that do not grow as stated, or nil.
func checkGrowth(r report.Results) error {
	faults := r.Disagree()
	if len(faults) == 0 {
		return nil
	}
	return fmt.Errorf("costs that do not grow as stated:\n  %s", strings.Join(faults, "\n  "))
}

// write creates a file with the text that fill writes.
func write(name string, fill func(io.Writer) error) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(fill(file), file.Close())
}
