// Command harm searches for worlds in which a guard harms.
//
//	go run -C proving ./cmd/harm -worlds 150 -seed 7 -guards recommended,weir
//	go run -C proving ./cmd/harm -config a.yaml,b.yaml
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/zeromicro/go-zero/core/logx"

	"github.com/weir-go/weir/proving/internal/config"
	"github.com/weir-go/weir/proving/internal/guards"
	"github.com/weir-go/weir/proving/internal/harm"
)

func main() {
	logx.Disable() // go-zero prints its memory every minute
	err := run(os.Args[1:], os.Stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "harm:", err)
		os.Exit(1)
	}
}

func run(arguments []string, out io.Writer) error {
	flags := flag.NewFlagSet("harm", flag.ContinueOnError)
	flags.SetOutput(out)
	worlds := flags.Int("worlds", 100, "the `number` of random worlds")
	seed := flags.Uint64("seed", 1, "the `seed` of the worlds")
	names := flags.String("guards", "", "the guards to judge, by the beginnings of their `names`; default all")
	show := flags.Int("show", 15, "the `number` of worst worlds of each guard to list")
	files := flags.String("config", "", "judge the worlds of these `files` in place of random ones")
	dir := flags.String("out", "", "the `directory` to write the listed worlds to")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	gs, err := choose(*names)
	if err != nil {
		return err
	}
	if *files != "" {
		return judgeFiles(out, strings.Split(*files, ","), gs)
	}
	start := time.Now()
	var all []harm.Found
	harm.Random(*worlds, *seed, gs, func(f harm.Found) { all = append(all, f) })
	if err := harm.Summary(out, all); err != nil {
		return err
	}
	if err := harm.Worst(out, all, *show); err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%d worlds in %v\n", len(all), time.Since(start).Round(time.Second))
	if *dir == "" {
		return nil
	}
	for _, f := range all {
		if slices.ContainsFunc(f.Verdicts, func(v harm.Verdict) bool { return len(v.Broken()) > 0 }) {
			name := filepath.Join(*dir, strings.ReplaceAll(f.Name, "/", "-")+".yaml")
			if err := write(name, f); err != nil {
				return err
			}
		}
	}
	return nil
}

// short are names for the guards that are easy to type.
var short = map[string]string{
	"recommended": guards.Recommended, "weir": guards.Weir, "host": guards.PerHost, "queue": guards.Queued,
	"gobreaker": guards.ByRate, "failsafe": "failsafe limiter",
}

func choose(names string) ([]harm.Guard, error) {
	if names == "" {
		return harm.Guards(), nil
	}
	var chosen []harm.Guard
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(harm.Guards(), func(g harm.Guard) bool { return g.Name == short[name] })
		if i < 0 {
			return nil, fmt.Errorf("unknown guard %q: use recommended, weir, host, queue, gobreaker or failsafe", name)
		}
		chosen = append(chosen, harm.Guards()[i])
	}
	return chosen, nil
}

func judgeFiles(out io.Writer, files []string, gs []harm.Guard) error {
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		c, err := config.Read(file, bytes.NewReader(text))
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s: %s\n", file, harm.Describe(c.World))
		for _, v := range harm.Judge(c.World, c.Seed, gs) {
			fmt.Fprintf(out, "  %-18s %s\n", v.Guard.Name, v)
		}
	}
	return nil
}

func write(name string, f harm.Found) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(harm.Write(file, f), file.Close())
}
