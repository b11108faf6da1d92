// Command harm searches for worlds in which a guard harms: its users get fewer good answers than
// with no guard, or with a simple one. It prints how many promises each guard breaks in random
// worlds, and the worst worlds in one line each:
//
//	go run -C dev/proving ./cmd/harm -worlds 150 -seed 7 -guards recommended,weir
//
// With -out it writes the worlds in which a promise is broken as files, which cmd/prove reads too.
// With -config it judges the worlds of files:
//
//	go run -C dev/proving ./cmd/harm -config a.yaml,b.yaml
//
// With -for it makes random worlds worse for that long, and with -check it judges all worlds of a
// directory and compares the broken promises with the list in broken.txt. With -page it writes the
// part "Whom it harms" of docs/protection.md, and a row for each world of the directory of -check.
package main

import (
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

	"github.com/weir-go/weir/dev/proving/internal/guards"
	"github.com/weir-go/weir/dev/proving/internal/harm"
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

// settings holds the values of the flags.
type settings struct {
	worlds, show              int
	seed                      uint64
	climb                     time.Duration
	names, files, check, page string
	out                       string
	guards                    []harm.Guard
}

func run(arguments []string, out io.Writer) error {
	var s settings
	flags := flag.NewFlagSet("harm", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.IntVar(&s.worlds, "worlds", 100, "the `number` of random worlds")
	flags.Uint64Var(&s.seed, "seed", 1, "the `seed` of the worlds")
	flags.StringVar(&s.names, "guards", "", "the `guards`, of recommended, weir, host, queue, gobreaker and failsafe; default all")
	flags.IntVar(&s.show, "show", 15, "the `number` of worst worlds of each guard to list")
	flags.StringVar(&s.files, "config", "", "judge the worlds of these `files`")
	flags.StringVar(&s.out, "out", "", "the `directory` to write worlds with a broken promise to")
	flags.DurationVar(&s.climb, "for", 0, "make worlds worse for this `time`")
	flags.StringVar(&s.check, "check", "", "judge the worlds of this `directory`, and compare with its list")
	flags.StringVar(&s.page, "page", "", "write the part about harm of this `file`")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if s.worlds < 1 {
		return errors.New("-worlds must be at least 1")
	}
	var err error
	if s.guards, err = choose(s.names); err != nil {
		return err
	}
	switch {
	case s.check != "" && s.page == "":
		return s.checkAll(out)
	case s.files != "":
		return s.judgeFiles(out, strings.Split(s.files, ","))
	case s.climb > 0:
		return s.search(out)
	}
	return s.judgeRandom(out)
}

// short are names for the guards that are easy to type.
var short = map[string]string{
	"recommended": guards.Recommended, "weir": guards.Weir, "host": guards.PerHost, "queue": guards.Queued,
	"gobreaker": guards.ByRate, "failsafe": "failsafe limiter",
}

func choose(names string) ([]harm.Guard, error) {
	all := harm.Guards()
	if names == "" {
		return all, nil
	}
	var chosen []harm.Guard
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(all, func(g harm.Guard) bool { return g.Name == short[name] })
		if i < 0 {
			return nil, fmt.Errorf("unknown guard %q: use recommended, weir, host, queue, gobreaker or failsafe", name)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// judgeRandom judges random worlds.
func (s *settings) judgeRandom(out io.Writer) error {
	start := time.Now()
	var all []harm.Found
	harm.Random(s.worlds, s.seed, s.guards, func(f harm.Found) { all = append(all, f) })
	if s.page != "" {
		return s.writePage(all)
	}
	if err := errors.Join(harm.Summary(out, all), harm.Worst(out, all, s.show)); err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%d worlds in %v\n", len(all), time.Since(start).Round(time.Second))
	for _, f := range all {
		if slices.ContainsFunc(f.Verdicts, func(v harm.Verdict) bool { return len(v.Broken()) > 0 }) {
			if err := s.write(f); err != nil {
				return err
			}
		}
	}
	return nil
}

// search makes worlds worse for one guard after the other.
func (s *settings) search(out io.Writer) error {
	var failed error
	for _, g := range s.guards {
		n, start := 0, time.Now()
		more := func() bool { return time.Since(start) < s.climb/time.Duration(len(s.guards)) }
		harm.Climb(g, s.seed, more, func(f harm.Found) {
			n++
			f.Name = strings.ReplaceAll(g.Name+"/"+f.Name, " ", "-")
			fmt.Fprintf(out, "%s: %s\n    %s\n", f.Name, harm.Describe(f.World), f.Verdicts[0])
			failed = errors.Join(failed, s.write(f))
		})
		fmt.Fprintf(out, "%s: found %d worlds\n", g.Name, n)
	}
	return failed
}

// write writes a world into the directory, if there is one.
func (s *settings) write(f harm.Found) error {
	if s.out == "" {
		return nil
	}
	name := filepath.Join(s.out, strings.NewReplacer("/", "-", ",", "").Replace(f.Name)+".yaml")
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(harm.Write(file, f), file.Close())
}
