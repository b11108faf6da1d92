// Command designs compares designs in front of the simulated services of the proving ground, and
// prints a Markdown table:
//
//	go run -C dev/proving ./cmd/designs
//	go run -C dev/proving ./cmd/designs -first 1 -seeds 10 -only "^fleet-return$"
//	go run -C dev/proving ./cmd/designs -of cooldowns
//
// The designs are those of an adaptive bound on calls in flight, each alone, or breakers with
// several cooldowns. A cell has the medians of the first two figures of the scenario, or on a good
// day the calls refused per million. See docs/designs.md.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"runtime"
	"strings"

	"github.com/zeromicro/go-zero/core/logx"

	"github.com/weir-go/weir/dev/proving/internal/report"
	"github.com/weir-go/weir/dev/proving/internal/scenario"
	"github.com/weir-go/weir/dev/proving/internal/sim"
)

func main() {
	// go-zero, which is among the guards of the proving ground, prints its memory every minute
	logx.Disable()
	err := run(os.Args[1:], os.Stdout)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "designs:", err)
		os.Exit(1)
	}
}

// designSets are the designs that are compared with each other, and a pattern for the scenarios in
// which they differ.
var designSets = map[string]struct {
	designs func() []sim.Maker
	shown   string
}{
	"bounds": {designs, "^(lost-capacity|hang|return|blip|fleet-.*|good-day-(85|95)-.*|growing-baseline|deployment-slower|steady-probes)$"},
	"cooldowns": {
		cooldowns,
		"^(outage|lost-capacity|hang|return|blip|flapping|fleet-.*|herd-of-retriers|cold-cache|retries-with-budget|semian-spike-100)$",
	},
}

func run(args []string, w io.Writer) error {
	flags := flag.NewFlagSet("designs", flag.ContinueOnError)
	flags.SetOutput(w)
	first := flags.Uint64("first", 101, "the first `seed`; 1 to 20 are for tuning, 101 to 120 for the report")
	seeds := flags.Uint64("seeds", 20, "the number of seeds")
	of := flags.String("of", "bounds", "the designs to compare: bounds or cooldowns")
	only := flags.String("only", "", "run only the scenarios whose names match this `regexp`, in place of those that tell the designs apart")
	among := flags.String("guards", "", "run only the designs whose names match this `regexp`")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *seeds == 0 {
		return errors.New("-seeds must be at least 1")
	}
	set, ok := designSets[*of]
	if !ok {
		return fmt.Errorf("-of is %q, must be bounds or cooldowns", *of)
	}
	names, err := regexp.Compile(cmp.Or(*only, set.shown))
	if err != nil {
		return err
	}
	guards, err := regexp.Compile(*among)
	if err != nil {
		return err
	}
	m := report.Matrix{Harmless: []string{}, Workers: runtime.GOMAXPROCS(0)}
	for i := range *seeds {
		m.Seeds = append(m.Seeds, *first+i)
	}
	for _, s := range scenario.All() {
		if names.MatchString(s.Name) {
			m.Scenarios = append(m.Scenarios, s)
		}
	}
	for _, d := range set.designs() {
		if guards.MatchString(d.Name) {
			m.Guards = append(m.Guards, d)
		}
	}
	return write(w, m.Run(func(report.Result) {}))
}

// write writes a row per scenario and a column per design.
func write(w io.Writer, results []report.Result) error {
	for i, r := range results {
		if i == 0 {
			fmt.Fprint(w, "| scenario |")
			for _, row := range r.Rows {
				fmt.Fprintf(w, " %s |", row.Guard.Name)
			}
			fmt.Fprintf(w, "\n|---|%s\n", strings.Repeat("--:|", len(r.Rows)))
		}
		for _, b := range r.Broken {
			return fmt.Errorf("%s, %s, seed %d: %s", r.Scenario.Name, b.Guard, b.Seed, b.Reason)
		}
		fmt.Fprintf(w, "| %s: %s |", r.Scenario.Name, columnHeads(r.Scenario))
		for _, row := range r.Rows {
			fmt.Fprintf(w, " %s |", formatCell(r.Scenario, row))
		}
		if _, err := fmt.Fprintln(w); err != nil {
			return err
		}
	}
	return nil
}

// columns returns the figures of a cell.
func columns(s scenario.Scenario) []scenario.Column {
	if s.Shown[0].Total {
		return s.Shown[:1]
	}
	return s.Shown[:2]
}

func columnHeads(s scenario.Scenario) string {
	var titles []string
	for _, c := range columns(s) {
		titles = append(titles, strings.TrimSpace(c.Title+" "+c.Unit))
	}
	return strings.Join(titles, " / ")
}

func formatCell(s scenario.Scenario, row scenario.Row) string {
	var figures []string
	for _, c := range columns(s) {
		digits := 1
		if c.Total {
			digits = 0
		}
		v := row.Spread(c).Median
		if math.IsNaN(v) {
			figures = append(figures, "–")
			continue
		}
		figures = append(figures, fmt.Sprintf("%.*f", digits, v))
	}
	return strings.Join(figures, " / ")
}
