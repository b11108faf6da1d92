package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/weir-go/weir/dev/bench/internal/binary"
	"github.com/weir-go/weir/dev/bench/internal/measure"
	"github.com/weir-go/weir/dev/bench/internal/memory"
	"github.com/weir-go/weir/dev/bench/internal/report"
	"github.com/weir-go/weir/dev/bench/internal/rows"
	"github.com/weir-go/weir/dev/bench/internal/scale"
)

// writeResults measures everything and writes RESULTS.md, with its charts in the directory results.
// It writes a missed bound like any other result, and returns an error afterwards.
func writeResults(w io.Writer, s settings) error {
	r := report.Results{Machine: report.ThisMachine(), Versions: report.Peers()}
	for _, step := range []func(io.Writer, settings, *report.Results) error{readProtection, runComparisons, runScaling, measurePrograms, measureMemory} {
		if err := step(w, s, &r); err != nil {
			return err
		}
	}
	if err := write(filepath.Join(s.dir, "RESULTS.md"), r.Write); err != nil {
		return err
	}
	return missedBounds(append(r.Outcomes, r.Fleet...), r.Memory)
}

func readProtection(_ io.Writer, _ settings, r *report.Results) (err error) {
	r.Protection, err = report.ReadProtection("../../docs/protection.md")
	return err
}

func measurePrograms(_ io.Writer, _ settings, r *report.Results) (err error) {
	r.Programs, err = binary.All(context.Background())
	return err
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

func measureMemory(w io.Writer, s settings, r *report.Results) (err error) {
	r.Memory, err = measureSizes(w, s, memory.All(s.keys))
	return err
}

// write creates a file with the text that fill writes.
func write(name string, fill func(io.Writer) error) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(fill(file), file.Close())
}
