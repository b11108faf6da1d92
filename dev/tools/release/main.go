// Command release prepares or checks a release of all modules.
//
//	go run -C dev/tools ./release v0.1.0
//	go run -C dev/tools ./release -check v0.1.0
//
// The first form checks that the tree is clean, that the version may have the changes of the API
// since the last release, and that make ci passes. It makes the commit and the tags of the release,
// and prints what is left to do by hand. It pushes nothing. A second run changes nothing.
//
// The second form checks that the release equals the one that the first form would make. The
// workflow of releases runs it on every new tag.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"

	"github.com/weir-go/weir/dev/tools/internal/releases"
)

func main() {
	check := flag.Bool("check", false, "check a release that is there")
	root := flag.String("root", "../..", "the root of the checkout")
	flag.Parse()
	if err := run(context.Background(), *root, *check, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, root string, check bool, args []string) error {
	if len(args) != 1 {
		return errors.New("which version? Say for example V=v0.1.0")
	}
	r := releases.Release{Root: root, Version: args[0], Green: func(ctx context.Context) error { return makeCI(ctx, root, args[0]) }}
	if check {
		return r.Check(ctx)
	}
	return r.Make(ctx, os.Stdout)
}

// makeCI checks that the version may have the changes of the API, and runs make ci in the checkout.
func makeCI(ctx context.Context, root, version string) error {
	cmd := exec.CommandContext(ctx, "make", "api", "ci", "V="+version)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CI=true")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("make api ci: %w", err)
	}
	return nil
}
