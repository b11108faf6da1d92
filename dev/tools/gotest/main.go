// Command gotest runs go test in several modules at once and prints their results one package at a
// time.
//
//	go run -C dev/tools ./gotest [-jobs 2] [-first dir,dir] [-norace dir,dir] -- [go test flags]
//
// It runs go test with the flags and ./... in every module of the checkout above tools. The
// directories of -first start first, and those of -norace are tested without -race. A package that
// passes takes one line. Of a package that fails, each failed test is printed with its messages
// first, then all other output. If nothing else was printed for 15s, a line names the tests that
// still run. The last lines give the reasons of skipped tests, the slowest packages, and the names
// of the failed tests. The exit status is 1 if anything failed. An interrupt or SIGTERM ends all
// tests, and the programs that they have started.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/weir-go/weir/dev/tools/internal/modules"
)

func main() {
	jobs := flag.Int("jobs", 2, "the number of modules to test at a time")
	first := flag.String("first", "", "the directories of the modules to start first, separated by commas")
	norace := flag.String("norace", "", "the directories of the modules to test without -race, separated by commas")
	root := flag.String("root", "../..", "the root of the checkout")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second interrupt ends gotest at once
	o := options{root: *root, jobs: *jobs, first: strings.Split(*first, ","), norace: strings.Split(*norace, ",")}
	if err := run(ctx, o, flag.Args(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
		os.Exit(1)
	}
}

type options struct {
	root          string
	jobs          int
	first, norace []string
}

func run(ctx context.Context, o options, flags []string, out io.Writer) error {
	list, err := modules.List(ctx, o.root)
	if err != nil {
		return err
	}
	for _, dir := range slices.Concat(o.first, o.norace) {
		if dir != "" && !slices.ContainsFunc(list, func(m modules.Module) bool { return m.Dir == dir }) {
			return fmt.Errorf("no module in directory %q", dir)
		}
	}
	r := newReport(out)
	watching, end := context.WithCancel(ctx)
	defer end()
	go r.watch(watching)
	slots := make(chan struct{}, max(o.jobs, 1))
	errs := make([]error, len(list))
	var wg sync.WaitGroup
	for i, m := range order(list, o.first) {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			if err := test(ctx, filepath.Join(o.root, m.Dir), m.Dir, o.flagsOf(m, flags), r); err != nil {
				errs[i] = fmt.Errorf("module %s: %w", m.Dir, err)
			}
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	r.printSummary()
	return errors.Join(errs...)
}

// flagsOf returns the flags for the tests of a module.
func (o options) flagsOf(m modules.Module, flags []string) []string {
	if !slices.Contains(o.norace, m.Dir) {
		return flags
	}
	return slices.DeleteFunc(slices.Clone(flags), func(f string) bool { return f == "-race" })
}

// order returns the modules with those in the directories of first in front.
func order(list []modules.Module, first []string) []modules.Module {
	rank := func(m modules.Module) int {
		if i := slices.Index(first, m.Dir); i >= 0 {
			return i
		}
		return len(first)
	}
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b modules.Module) int { return rank(a) - rank(b) })
	return list
}

// patience is how long tests may take to end after an interrupt.
const patience = 5 * time.Second

// test runs go test in the directory dir and adds what it prints to the report of the module.
//
// The processes form a group of their own, because go test leaves it to the terminal to interrupt
// the programs of the tests.
func test(ctx context.Context, dir, module string, flags []string, r *report) error {
	cmd := exec.CommandContext(ctx, "go", slices.Concat([]string{"test", "-json"}, flags, []string{"./..."})...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = patience
	reader, writer := io.Pipe()
	cmd.Stdout, cmd.Stderr = writer, writer
	read := make(chan struct{})
	r.beginModule(module)
	defer r.endModule(module)
	go func() {
		defer close(read)
		lines := bufio.NewReader(reader)
		for {
			line, err := lines.ReadBytes('\n')
			if len(line) > 0 && ctx.Err() == nil {
				r.add(module, line)
			}
			if err != nil {
				return
			}
		}
	}()
	err := cmd.Run()
	_ = writer.Close()
	<-read
	if ctx.Err() != nil && cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what ignored the interrupt
	}
	return err
}
