package releases

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/weir-go/weir/dev/tools/internal/modules"
)

// Check returns an error unless the release in the checkout is what Make makes: the tags of all
// modules are at one commit, and this commit differs from its parent by the changes of the release
// alone. It does not run CI.
func (r Release) Check(ctx context.Context) error {
	if err := validVersion(r.Version); err != nil {
		return err
	}
	commit, err := modules.Git(ctx, r.Root, "rev-parse", "--verify", "refs/tags/"+r.Version+"^{commit}")
	if err != nil {
		return fmt.Errorf("there is no tag %s: %w", r.Version, err)
	}
	tags, err := r.tags(ctx)
	if err != nil {
		return err
	}
	faults := []error{check(ctx, r.Root, commit, r.Version)}
	for _, tag := range tags {
		tagged, err := modules.Git(ctx, r.Root, "rev-parse", "--verify", "--quiet", "refs/tags/"+tag+"^{commit}")
		switch {
		case err != nil:
			faults = append(faults, fmt.Errorf("the tag %s is missing", tag))
		case tagged != commit:
			faults = append(faults, fmt.Errorf("the tag %s is at %.12s, want %.12s", tag, tagged, commit))
		}
	}
	return errors.Join(faults...)
}

// check makes the changes of the release to a copy of the commit's parent, and returns an error if
// the commit's tree differs from the result.
func check(ctx context.Context, root, commit, version string) error {
	stamp, err := modules.Git(ctx, root, "show", "--no-patch", "--format=%cI", commit)
	if err != nil {
		return err
	}
	date, err := time.Parse(time.RFC3339, stamp)
	if err != nil {
		return err
	}
	root, err = filepath.Abs(root)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "release-check")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	for _, args := range [][]string{
		{"init", "--quiet"},
		{"fetch", "--quiet", "--depth=2", root, commit},
		{"checkout", "--quiet", "--detach", commit + "^"},
	} {
		if _, err := modules.Git(ctx, dir, args...); err != nil {
			return err
		}
	}
	if err := errors.Join(edit(ctx, dir, version, date), checkPrograms(ctx, dir)); err != nil {
		return err
	}
	if _, err := modules.Git(ctx, dir, "add", "--all"); err != nil {
		return err
	}
	difference, err := modules.Git(ctx, dir, "diff", "--cached", "-R", commit)
	if err == nil && difference != "" {
		err = fmt.Errorf("the tree of %.12s is not what make release V=%s makes from its parent; it differs by\n%s", commit, version, difference)
	}
	return err
}
