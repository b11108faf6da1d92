// Package binary measures by how much a library enlarges a program, and how long it takes to start.
package binary

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
)

// Program is what a library adds to a program that prints "hello".
type Program struct {
	Name string
	Adds int64 // bytes of a stripped executable
	// Init is the milliseconds that the packages of the library take at the start, the shortest of
	// several.
	Init float64
}

// programs are the directories of the programs, with the name of the library and the packages whose
// initialization counts.
var programs = []struct{ dir, name, packages string }{
	{"breaker", "a breaker of weir", "weir-go/weir"},
	{"gate", "a gate of weir with a rate", "weir-go/weir"},
	{"gobreaker", "gobreaker", "sony/gobreaker"},
	{"failsafe", "failsafe-go: a breaker and a limiter", "failsafe-go"},
}

// starts is how many times a program is started.
const starts = 20

// All builds and starts the programs. It needs the go command, and must run in the module's
// directory.
func All(ctx context.Context) (all []Program, err error) {
	dir, err := os.MkdirTemp("", "binary")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	nothing, err := build(ctx, dir, "nothing")
	if err != nil {
		return nil, err
	}
	for _, p := range programs {
		size, err := build(ctx, dir, p.dir)
		if err != nil {
			return nil, err
		}
		init, err := start(ctx, filepath.Join(dir, p.dir), p.packages)
		if err != nil {
			return nil, err
		}
		all = append(all, Program{p.name, size - nothing, init})
	}
	return all, nil
}

// build builds a program without its symbols and returns its size.
func build(ctx context.Context, dir, program string) (bytes int64, err error) {
	out := filepath.Join(dir, program)
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", out, "./internal/binary/programs/"+program)
	if text, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%w\n%s", err, text)
	}
	info, err := os.Stat(out)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// initTrace matches a line of GODEBUG=inittrace=1.
var initTrace = regexp.MustCompile(`(?m)^init (\S+) @[0-9.]+ ms, ([0-9.]+) ms clock`)

// start starts a program several times and returns the shortest sum of the initialization of the
// packages.
func start(ctx context.Context, program, packages string) (shortest float64, err error) {
	ours := regexp.MustCompile(`^github\.com/` + packages)
	for i := range starts {
		cmd := exec.CommandContext(ctx, program)
		cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
		text, err := cmd.CombinedOutput()
		if err != nil {
			return 0, fmt.Errorf("%w\n%s", err, text)
		}
		sum := 0.0
		for _, line := range initTrace.FindAllStringSubmatch(string(text), -1) {
			if ms, _ := strconv.ParseFloat(line[2], 64); ours.MatchString(line[1]) {
				sum += ms
			}
		}
		if i == 0 || sum < shortest {
			shortest = sum
		}
	}
	return shortest, nil
}
