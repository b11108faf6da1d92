package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/weir-go/weir/dev/bench/internal/measure"
	"github.com/weir-go/weir/dev/bench/internal/memory"
	"github.com/weir-go/weir/dev/bench/internal/report"
	"github.com/weir-go/weir/dev/bench/internal/rows"
	"github.com/weir-go/weir/dev/bench/internal/scale"
)

// compareAll runs all comparisons, and measures the memory of objects.
func compareAll(w io.Writer, s settings) error {
	if _, err := measureFloors(w, s, measure.Modes()...); err != nil {
		return err
	}
	outcomes, err := runRows(w, s, rows.All(s.keys), measure.Modes()...)
	if err != nil {
		return err
	}
	onRedis, redisErr := runFleetRows(w, s) // without Redis the other results still count
	sizes, err := measureSizes(w, s, memory.All(s.keys))
	return errors.Join(redisErr, err, checkCores(w, s), missedBounds(append(outcomes, onRedis...), sizes))
}

// compareMain runs the main comparisons.
func compareMain(w io.Writer, s settings) error {
	modes := []measure.Mode{measure.Serial, measure.Threads}
	if _, err := measureFloors(w, s, modes...); err != nil {
		return err
	}
	notMain := func(row rows.Row) bool { return !row.Main }
	outcomes, err := runRows(w, s, slices.DeleteFunc(rows.All(s.keys), notMain), modes...)
	return errors.Join(err, missedBounds(outcomes, nil))
}

// measureFloors writes the head of the table, and measures the selected costs of the machine
// itself.
func measureFloors(w io.Writer, s settings, modes ...measure.Mode) (all []rows.Floor, err error) {
	if err := report.Header(w); err != nil {
		return nil, err
	}
	for _, side := range rows.Floors() {
		if !s.only.MatchString("floor: " + side.Name) {
			continue
		}
		f, err := rows.RunFloor(s.plan, side, modes...)
		if err != nil {
			return all, err
		}
		if err := report.FloorLines(w, f, modes...); err != nil {
			return all, err
		}
		all = append(all, f)
	}
	return all, nil
}

// runRows runs the selected rows, and writes each result when it is known.
func runRows(w io.Writer, s settings, all []rows.Row, modes ...measure.Mode) (outcomes []rows.Outcome, err error) {
	for _, row := range all {
		if !s.only.MatchString(row.Name) {
			continue
		}
		o, err := rows.Run(s.plan, row, modes...)
		if err != nil {
			return outcomes, err
		}
		if err := report.Lines(w, o); err != nil {
			return outcomes, err
		}
		outcomes = append(outcomes, o)
	}
	return outcomes, nil
}

// runFleetRows runs the selected rows that need Redis, and starts a server if there are any. A
// turn is longer than for work in memory: with many callers, each caller must make several calls in
// a turn.
func runFleetRows(w io.Writer, s settings) (outcomes []rows.Outcome, err error) {
	if !slices.ContainsFunc(rows.Fleet(nil), func(row rows.Row) bool { return s.only.MatchString(row.Name) }) {
		return nil, nil
	}
	r, err := rows.StartRedis(context.Background())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Stop()) }()
	s.plan.Rounds, s.plan.Each = (s.plan.Rounds+1)/2, 3*s.plan.Each
	return runRows(w, s, rows.Fleet(r), rows.FleetModes()...)
}

// measureSizes measures the memory of the selected objects, and writes each result.
func measureSizes(w io.Writer, s settings, objects []memory.Object) (all []memory.Size, err error) {
	for _, object := range objects {
		if !s.only.MatchString(object.Name) {
			continue
		}
		size := object.Size()
		if _, err := fmt.Fprintln(w, size); err != nil {
			return all, err
		}
		all = append(all, size)
	}
	return all, nil
}

// missedBounds returns an error that lists the missed bounds, or nil.
func missedBounds(outcomes []rows.Outcome, sizes []memory.Size) error {
	var faults []string
	for _, o := range outcomes {
		faults = append(faults, o.Missed()...)
	}
	for _, size := range sizes {
		if size.Missed() {
			faults = append(faults, size.String())
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return fmt.Errorf("bounds missed by more than the noise:\n  %s", strings.Join(faults, "\n  "))
}

// checkCores returns an error if a cost collapses with more threads than there are cores.
func checkCores(w io.Writer, s settings) error {
	e := scale.Cores(10 * s.plan.Each)
	if !s.only.MatchString(e.Title) {
		return nil
	}
	curves, err := e.Run()
	if err != nil {
		return err
	}
	for _, c := range curves {
		if _, err := fmt.Fprintf(w, "%-42s GOMAXPROCS %v: %.3g ns\n", c.Name, e.Sizes, c.Costs); err != nil {
			return err
		}
	}
	if faults := e.Collapsed(curves); len(faults) > 0 {
		return fmt.Errorf("slower with more threads:\n  %s", strings.Join(faults, "\n  "))
	}
	return nil
}

// guardAll returns an error if the cost of a main row has doubled.
func guardAll(w io.Writer, s settings) error {
	var slow []string
	for _, row := range rows.All(1) {
		if !row.Main || !s.only.MatchString(row.Name) {
			continue
		}
		best, doubled, err := rows.Doubled(s.plan, row)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "%-50s %.2f of %s, bound %.2f\n", row.Name, best, row.Peer.Name, row.Serial); err != nil {
			return err
		}
		if doubled {
			slow = append(slow, row.Name)
		}
	}
	if len(slow) > 0 {
		return fmt.Errorf("much slower than before: %s", strings.Join(slow, "; "))
	}
	return nil
}
