// Command prove shows how well configurations of weir would protect a service. It reads a service,
// its load, faults and guards from a file, simulates them in virtual time, and prints one row per
// guard:
//
//	go run -C dev/proving ./cmd/prove -config prove.yaml -charts /tmp
//
// prove.yaml in the directory proving explains the file. Each figure is the median of all seeds,
// with their range in brackets. The figures "meanwhile" are those of the calls that began during
// the faults.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/weir-go/weir/dev/proving/internal/config"
	"github.com/weir-go/weir/dev/proving/internal/scenario"
	"github.com/weir-go/weir/internal/chart"
)

func main() {
	err := prove(os.Args[1:], os.Stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func prove(arguments []string, out io.Writer) error {
	flags := flag.NewFlagSet("prove", flag.ContinueOnError)
	flags.SetOutput(out)
	file := flags.String("config", "prove.yaml", "the `file` to read")
	charts := flags.String("charts", "", "the `directory` to write a chart into, as SVG")
	seeds := flags.Uint64("seeds", 0, "the `number` of runs for each guard, in place of the file's")
	seed := flags.Uint64("seed", 0, "the first `seed`, in place of the file's")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("prove: unexpected argument %q", flags.Arg(0))
	}
	c, err := read(*file)
	if err != nil {
		return err
	}
	if *seeds > 0 {
		c.Seeds = *seeds
	}
	if *seed > 0 {
		c.Seed = *seed
	}
	rows := run(c)
	s := scenario.Custom(c.Title, c.World)
	if err := printTable(out, c, s, rows); err != nil || *charts == "" {
		return err
	}
	path := filepath.Join(*charts, strings.TrimSuffix(filepath.Base(*file), filepath.Ext(*file))+".svg")
	if err := writeChart(path, panels(c, rows)); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "\nThe chart is %s\n", path)
	return err
}

func read(file string) (config.Config, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return config.Config{}, err
	}
	return config.Read(file, bytes.NewReader(text))
}

func writeChart(path string, p chart.Panels) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(p.Write(f), f.Close())
}
