// Command consume shows that the next release can be used from outside this repository.
//
//	go run -C dev/tools ./consume
//
// It makes the release in a copy of the last commit, serves the modules of the copy to the go
// command from a directory, and then, with an empty module cache and outside the repository:
//
//   - builds and runs a program that imports every package of the core, and requires that it links
//     only the core and the standard library,
//   - does the same with each other module alone, and with all of them in one program,
//   - installs every program by its version,
//   - builds every example, copied out of the repository.
//
// Modules of other projects come from the proxy that go env GOPROXY names.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/mod/semver"

	"github.com/weir-go/weir/dev/tools/internal/modules"
	"github.com/weir-go/weir/dev/tools/internal/releases"
)

func main() {
	root := flag.String("root", "../..", "the root of the checkout")
	flag.Parse()
	if err := run(context.Background(), *root); err != nil {
		fmt.Fprintln(os.Stderr, "consume:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, root string) (err error) {
	dir, err := os.MkdirTemp("", "consume")
	if err != nil {
		return err
	}
	defer func() {
		if e := removeAll(dir); err == nil {
			err = e
		}
	}()
	checkout := filepath.Join(dir, "copy")
	version, err := releaseCopy(ctx, root, checkout)
	if err != nil {
		return err
	}
	rest, err := modules.Run(ctx, root, nil, "go", "env", "GOPROXY")
	if err != nil {
		return err
	}
	return use(ctx, checkout, version, rest, dir)
}

// releaseCopy clones the checkout and makes a release in the clone: the one that HEAD is tagged
// with, or else the next minor version.
func releaseCopy(ctx context.Context, root, dir string) (version string, err error) {
	root, err = filepath.Abs(root)
	if err != nil {
		return "", err
	}
	if _, err := modules.Git(ctx, filepath.Dir(dir), "clone", "--quiet", root, dir); err != nil {
		return "", err
	}
	for _, setting := range [][2]string{{"user.name", "consume"}, {"user.email", "consume@localhost"}} {
		if _, err := modules.Git(ctx, dir, "config", setting[0], setting[1]); err != nil {
			return "", err
		}
	}
	version, err = modules.Git(ctx, dir, "describe", "--tags", "--exact-match", "--match=v*")
	if err != nil {
		if version, err = nextVersion(ctx, dir); err != nil {
			return "", err
		}
	}
	fmt.Printf("-- release %s in a copy\n", version)
	return version, releases.Release{Root: dir, Version: version}.Make(ctx, io.Discard)
}

// nextVersion returns the minor version after the latest release of the checkout.
func nextVersion(ctx context.Context, dir string) (string, error) {
	latest, err := releases.Latest(ctx, dir)
	if err != nil || latest == "" {
		return "v0.1.0", err
	}
	var major, minor int
	if _, err := fmt.Sscanf(semver.MajorMinor(latest), "v%d.%d", &major, &minor); err != nil {
		return "", fmt.Errorf("version %s: %w", latest, err)
	}
	return fmt.Sprintf("v%d.%d.0", major, minor+1), nil
}

// removeAll removes a directory that contains a module cache, which is read-only.
func removeAll(dir string) error {
	err := filepath.WalkDir(dir, func(name string, entry os.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			err = os.Chmod(name, 0o755) //nolint:gosec // to be removed
		}
		return err
	})
	if err != nil {
		return err
	}
	return os.RemoveAll(dir)
}
