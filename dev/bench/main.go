package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"time"

	"github.com/weir-go/weir/dev/bench/internal/measure"
	"github.com/weir-go/weir/dev/bench/internal/rows"
)

func main() {
	err := run(os.Args[1:], os.Stdout)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// settings holds the values of the flags.
type settings struct {
	plan measure.Plan
	only *regexp.Regexp // selects rows by name
	keys int            // the number of live keys of a keyed limiter
	upto int            // the largest size in an experiment
	dir  string         // the directory of RESULTS.md
}

// command is a command with its default plan.
type command struct {
	do   func(io.Writer, settings) error
	plan measure.Plan
}

func commands() map[string]command {
	return map[string]command{
		"compare": {compareAll, measure.Plan{Rounds: 40, Each: 15 * time.Millisecond}},
		"quick":   {compareMain, measure.Plan{Rounds: 30, Each: 10 * time.Millisecond}},
		"guard":   {guardAll, measure.Plan{Rounds: 100, Each: time.Millisecond}},
		"results": {writeResults, measure.Plan{Rounds: 40, Each: 15 * time.Millisecond}},
	}
}

// run runs the command that the first argument names, on two cores.
func run(args []string, w io.Writer) error {
	name := "compare"
	if len(args) > 0 && args[0] != "" && args[0][0] != '-' {
		name, args = args[0], args[1:]
	}
	c, ok := commands()[name]
	if !ok {
		return fmt.Errorf("unknown command %q: use compare, quick, guard or results", name)
	}
	s, err := parse(name, c.plan, args)
	if err != nil {
		return err
	}
	rows.Silence()
	runtime.GOMAXPROCS(2)
	return c.do(w, s)
}

// parse parses the flags of a command.
func parse(name string, plan measure.Plan, args []string) (s settings, err error) {
	s.plan = plan
	flags := flag.NewFlagSet("bench "+name, flag.ContinueOnError)
	flags.IntVar(&s.plan.Rounds, "rounds", s.plan.Rounds, "the number of turns of each side, at least 10 for a verdict")
	flags.DurationVar(&s.plan.Each, "each", s.plan.Each, "the duration of one turn of one side")
	flags.IntVar(&s.plan.Allocs, "allocs", 10_000, "the number of calls over which allocations are counted")
	flags.IntVar(&s.keys, "keys", 1_000_000, "the number of live keys of a keyed limiter")
	flags.StringVar(&s.dir, "dir", ".", "the directory of RESULTS.md")
	flags.IntVar(&s.upto, "upto", 1_000_000, "the largest size in the experiments on scaling")
	only := flags.String("only", "", "compare only the rows whose names match this `regexp`")
	if err = flags.Parse(args); err != nil {
		return s, err
	}
	if s.plan.Rounds < 1 || s.plan.Allocs < 1 {
		return s, fmt.Errorf("-rounds=%d -allocs=%d: want at least 1 of each", s.plan.Rounds, s.plan.Allocs)
	}
	s.only, err = regexp.Compile(*only)
	return s, err
}
