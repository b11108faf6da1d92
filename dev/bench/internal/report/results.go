// Package report writes the results.
package report

import (
	_ "embed" // the text around the tables
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/template"

	"github.com/weir-go/weir/dev/bench/internal/binary"
	"github.com/weir-go/weir/dev/bench/internal/measure"
	"github.com/weir-go/weir/dev/bench/internal/memory"
	"github.com/weir-go/weir/dev/bench/internal/rows"
	"github.com/weir-go/weir/dev/bench/internal/scale"
)

// Results holds all figures of RESULTS.md.
type Results struct {
	Machine    Machine
	Versions   []string
	Floors     []rows.Floor
	Outcomes   []rows.Outcome
	Fleet      []rows.Outcome // decisions on Redis, in rows.FleetModes
	Scaling    []Scaling
	Memory     []memory.Size
	Programs   []binary.Program
	Protection Protection
}

// Scaling is an experiment with its results.
type Scaling struct {
	scale.Experiment
	Curves []scale.Curve
}

//go:embed results.md.tmpl
var text string

// Write writes RESULTS.md.
func (r Results) Write(w io.Writer) error {
	t, err := template.New("RESULTS.md").Parse(text)
	if err != nil {
		return err
	}
	var page strings.Builder
	if err := t.Execute(&page, r); err != nil {
		return err
	}
	_, err = io.WriteString(w, wrapLongLines(page.String()))
	return err
}

// MainTable returns the comparisons with other libraries that have a bound.
func (r Results) MainTable() string {
	t := table{head: []string{"one call", "weir, ns", "the other, ns", "ratio", "2 threads", "the other"}}
	for _, o := range r.Outcomes {
		if !o.Main || o.Floor {
			continue
		}
		serial, threads := o.In[0], o.In[1]
		t.add(o.Name, formatNumber(measure.SpreadOf(serial.Weir).Median), formatNumber(measure.SpreadOf(serial.Peer).Median),
			fmt.Sprintf("%.2f", measure.SpreadOf(serial.Ratio).Median), fmt.Sprintf("%.2f", measure.SpreadOf(threads.Ratio).Median), o.Peer.Name)
	}
	return t.String()
}

// ProgramTable returns what libraries add to a program.
func (r Results) ProgramTable() string {
	t := table{head: []string{"a program with", "MB", "ms at the start"}}
	for _, p := range r.Programs {
		t.add(p.Name, fmt.Sprintf("%.2f", float64(p.Adds)/1e6), fmt.Sprintf("%.3f", p.Init))
	}
	return t.String()
}

// FloorTable returns the costs of the machine itself.
func (r Results) FloorTable() string {
	t := table{head: []string{"floor", "serial ns", "2 threads ns", "8 goroutines ns"}}
	for _, f := range r.Floors {
		cells := []string{sideText(f.Side)}
		for _, cost := range f.Costs {
			cells = append(cells, formatNumber(cost.Median))
		}
		t.add(cells...)
	}
	return t.String()
}

// BoundTable returns the comparisons with bounds.
func (r Results) BoundTable() string {
	return r.comparisons(func(o rows.Outcome) bool { return o.Serial > 0 })
}

// OtherTable returns the comparisons without bounds.
func (r Results) OtherTable() string {
	return r.comparisons(func(o rows.Outcome) bool { return o.Serial == 0 })
}

func (r Results) comparisons(which func(rows.Outcome) bool) string {
	t := table{head: []string{"comparison", "serial: weir / peer, ns", "ratio", "bound", "2 threads: weir / peer, ns", "ratio (worst)", "bound", "8 goroutines: ratio", "allocs"}}
	for _, o := range r.Outcomes {
		if which(o) {
			t.add(comparison(o)...)
		}
	}
	return t.String()
}

func comparison(o rows.Outcome) []string {
	cells := []string{o.Name}
	for i, m := range o.Modes {
		c := o.In[i]
		ratio := measure.SpreadOf(c.Ratio)
		costs := formatNumber(measure.SpreadOf(c.Weir).Median) + " / " + formatNumber(measure.SpreadOf(c.Peer).Median)
		switch m {
		case measure.Goroutines8:
			cells = append(cells, ratio.String())
		case measure.Threads:
			cells = append(cells, costs, fmt.Sprintf("%s (%.2f)", ratio, ratio.Worst), boundAndVerdict(o, i))
		default:
			cells = append(cells, costs, ratio.String(), boundAndVerdict(o, i))
		}
	}
	return append(cells, fmt.Sprintf("%d / %d", o.Allocs.Weir, o.Allocs.Peer))
}

// FleetTable returns the comparisons of decisions on Redis.
func (r Results) FleetTable() string {
	t := table{head: []string{"comparison"}}
	for _, m := range rows.FleetModes() {
		t.head = append(t.head, callers(m)+": weir / peer, per second", "ratio", "bound")
	}
	for _, o := range r.Fleet {
		cells := []string{o.Name}
		for i, c := range o.In {
			cells = append(cells, perSecond(c.Weir)+" / "+perSecond(c.Peer), measure.SpreadOf(c.Ratio).String(), boundAndVerdict(o, i))
		}
		t.add(cells...)
	}
	return t.String()
}

func callers(m measure.Mode) string {
	if m == measure.Serial {
		return "1 caller"
	}
	return fmt.Sprintf("%d callers", int(m))
}

// perSecond returns the operations per second, rounded to hundreds.
func perSecond(ns []float64) string {
	return fmt.Sprintf("%.0f", math.Round(1e7/measure.SpreadOf(ns).Median)*100)
}

// boundAndVerdict returns the bound, and the verdict unless the bound is reached.
func boundAndVerdict(o rows.Outcome, i int) string {
	switch v := o.Verdict(i); v {
	case measure.NoBound:
		return ""
	case measure.Reached:
		return formatBound(o.Bound(o.Modes[i]))
	default:
		return formatBound(o.Bound(o.Modes[i])) + ", " + string(v)
	}
}

// SideTable returns what the two sides of each comparison do.
func (r Results) SideTable() string {
	t := table{words: true, head: []string{"comparison", "weir", "peer", "note"}}
	for _, o := range slices.Concat(r.Outcomes, r.Fleet) {
		t.add(o.Name, sideText(o.Weir), sideText(o.Peer), o.Why)
	}
	return t.String()
}

func sideText(s rows.Side) string { return "`" + s.Name + "`: " + s.Does }

// Slower returns the comparisons in which the peer is faster in any mode.
func (r Results) Slower() (slower []rows.Outcome) {
	for _, o := range slices.Concat(r.Outcomes, r.Fleet) {
		loses := func(c measure.Comparison) bool { return measure.SpreadOf(c.Ratio).Lo > 1 }
		if !o.Floor && slices.ContainsFunc(o.In, loses) {
			slower = append(slower, o)
		}
	}
	return slower
}

// MemoryTable returns how many bytes objects take.
func (r Results) MemoryTable() string {
	t := table{head: []string{"object", "bytes", "bound"}}
	for _, m := range r.Memory {
		limit := ""
		if m.Bound > 0 {
			limit = fmt.Sprintf("%.0f", m.Bound)
		}
		t.add(m.Name, formatNumber(m.Bytes), limit)
	}
	return t.String()
}
