// Command proving runs guards against simulated services, and compares how well they protect.
//
//	go run -C dev/proving . whole    # every scenario: writes docs/protection.md and reached.txt
//	go run -C dev/proving . quick    # the main ones: fails where a goal of reached.txt is lost
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/zeromicro/go-zero/core/logx"

	"github.com/weir-go/weir/dev/proving/internal/guards"
	"github.com/weir-go/weir/dev/proving/internal/report"
	"github.com/weir-go/weir/dev/proving/internal/scenario"
	"github.com/weir-go/weir/dev/proving/internal/sim"
)

func main() {
	logx.Disable() // go-zero prints its memory every minute
	err := run(os.Args[1:], os.Stdout)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "proving:", err)
		os.Exit(1)
	}
}

// settings holds the values of the flags.
type settings struct {
	first, seeds uint64
	only         *regexp.Regexp // selects scenarios by name
	guards       *regexp.Regexp // selects guards by name
	docs         string         // the directory of protection.md
	record       string         // the name of reached.txt
	makers       []sim.Maker
	scenarios    []scenario.Scenario
}

// run runs the command that the first argument names.
func run(args []string, w io.Writer) error {
	name := "whole"
	if len(args) > 0 && args[0] != "" && args[0][0] != '-' {
		name, args = args[0], args[1:]
	}
	s := settings{makers: guards.All(), scenarios: scenario.All()}
	do, seeds := runEverything, uint64(20)
	switch name {
	case "whole":
	case "quick":
		do, seeds = runQuick, 6
		s.makers = guards.Quick()
		s.scenarios = slices.DeleteFunc(s.scenarios, func(sc scenario.Scenario) bool { return !sc.Quick })
	default:
		return fmt.Errorf("unknown command %q: use whole or quick", name)
	}
	s.makers = append([]sim.Maker{sim.None(), sim.Oracle()}, s.makers...)
	if err := s.parse(name, seeds, args); err != nil {
		return err
	}
	return do(w, s)
}

// parse parses the flags of a command.
func (s *settings) parse(name string, seeds uint64, args []string) (err error) {
	flags := flag.NewFlagSet("proving "+name, flag.ContinueOnError)
	flags.Uint64Var(&s.first, "first", 101, "the first `seed`; 1 to 20 are for tuning, 101 to 120 for the report")
	flags.Uint64Var(&s.seeds, "seeds", seeds, "the number of seeds")
	flags.StringVar(&s.docs, "docs", filepath.Join("..", "..", "docs"), "the directory that protection.md is written to")
	flags.StringVar(&s.record, "record", "reached.txt", "the `file` of the goals that were reached")
	only := flags.String("only", "", "run only the scenarios whose names match this `regexp`, and write nothing")
	among := flags.String("guards", "", "run only the guards whose names match this `regexp`, and write nothing")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if s.seeds == 0 {
		return errors.New("-seeds must be at least 1")
	}
	if s.only, err = regexp.Compile(*only); err != nil {
		return err
	}
	s.guards, err = regexp.Compile(*among)
	return err
}

// selectsPart reports whether the flags select only a part of what a command runs.
func (s settings) selectsPart() bool { return s.only.String() != "" || s.guards.String() != "" }

// matrix returns what the settings select.
func (s settings) matrix() report.Matrix {
	m := report.Matrix{Workers: runtime.GOMAXPROCS(0)}
	for seed := range s.seeds {
		m.Seeds = append(m.Seeds, s.first+seed)
	}
	for _, sc := range s.scenarios {
		if s.only.MatchString(sc.Name) {
			m.Scenarios = append(m.Scenarios, sc)
		}
	}
	for _, g := range s.makers {
		if s.guards.MatchString(g.Name) {
			m.Guards = append(m.Guards, g)
		}
	}
	return m
}

// runQuick runs the main scenarios, and returns an error if a goal of the record is lost.
func runQuick(w io.Writer, s settings) error {
	record, err := readRecord(s.record)
	if err != nil {
		return err
	}
	m := s.matrix()
	m.Harmless = append([]string{}, record.Harmless...)
	results, err := runAll(w, m)
	if err != nil || s.selectsPart() {
		return err
	}
	if lost := record.Lost(results); len(lost) > 0 {
		return fmt.Errorf("goals that were reached are lost:\n  %s", strings.Join(lost, "\n  "))
	}
	return nil
}

// runEverything runs all simulations, and writes the page, its charts and the record.
func runEverything(w io.Writer, s settings) error {
	m := s.matrix()
	if s.selectsPart() {
		record, err := readRecord(s.record)
		if err != nil {
			return err
		}
		m.Harmless = append([]string{}, record.Harmless...)
	}
	results, err := runAll(w, m)
	if err != nil || s.selectsPart() {
		return err
	}
	page := report.Page{
		Commit: commitText(context.Background()), Versions: peerVersions(), Seeds: m.Seeds, Guards: m.Guards, Left: guards.Left(), Results: results,
	}
	return writeAll(s, page)
}

// runAll runs a matrix, and writes each result as text when it is known.
func runAll(w io.Writer, m report.Matrix) ([]report.Result, error) {
	var failed error
	results := m.Run(func(r report.Result) {
		if err := report.Text(w, r); failed == nil {
			failed = err
		}
	})
	return results, failed
}
