// Package releases makes releases of this repository: a commit in which every go.mod requires the
// version of its siblings, and a tag on it for each module.
package releases

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/semver"

	"github.com/weir-go/weir/dev/tools/internal/modules"
)

// A Release is one version of all modules.
type Release struct {
	// Root is the directory of the checkout.
	Root string
	// Version is the version, such as v0.1.0.
	Version string
	// Green checks the commit that the release is made from. If Green is nil, this check is left
	// out. The check that CHANGELOG.md has something to release is then left out too.
	Green func(context.Context) error
}

// Make makes the commit and the tags of the release in the checkout, and writes to out what is left
// to do by hand. It does nothing that is done already. If it fails before the commit, it has
// changed nothing.
func (r Release) Make(ctx context.Context, out io.Writer) error {
	if err := validVersion(r.Version); err != nil {
		return err
	}
	commit, err := r.find(ctx)
	if err != nil {
		return err
	}
	if commit == "" {
		if commit, err = r.commit(ctx); err != nil {
			return err
		}
	}
	tags, err := r.tag(ctx, commit)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s is commit %.12s with %d tags. Nothing has left this machine. The remaining steps:\n\n"+
		"  git push --atomic origin %[2]s:refs/heads/main %[4]s\n"+
		"  git push origin %[1]s\n\n"+
		"GitHub starts no workflow for more than three tags at once, so the tag of the core comes alone and last.\n"+
		"Then watch the workflow \"release\", which runs make release-check V=%[1]s on that tag.\n",
		r.Version, commit, len(tags), strings.Join(tags[:len(tags)-1], " "))
	return nil
}

// find returns the commit of the release, or "" if it is still to be made.
func (r Release) find(ctx context.Context) (string, error) {
	tagged, err := modules.Git(ctx, r.Root, "rev-parse", "--verify", "--quiet", "refs/tags/"+r.Version+"^{commit}")
	if err == nil {
		return tagged, check(ctx, r.Root, tagged, r.Version)
	}
	head, err := modules.Git(ctx, r.Root, "rev-parse", "HEAD")
	if err != nil {
		return "", err
	}
	if check(ctx, r.Root, head, r.Version) == nil {
		// an earlier run ended between the commit and the tags
		return head, nil
	}
	return "", nil
}

// commit checks that HEAD can be released, and commits the changes of the release.
func (r Release) commit(ctx context.Context) (string, error) {
	if err := errors.Join(r.checkNewer(ctx), r.checkClean(ctx), checkPrograms(ctx, r.Root)); err != nil {
		return "", err
	}
	if r.Green != nil {
		if err := errors.Join(r.checkChangelog(), r.Green(ctx), r.checkClean(ctx)); err != nil {
			return "", err
		}
	}
	now := time.Now().UTC()
	if err := edit(ctx, r.Root, r.Version, now); err != nil {
		_, restored := modules.Git(ctx, r.Root, "checkout", "--quiet", "--", ".")
		return "", errors.Join(err, restored)
	}
	stamp := now.Format(time.RFC3339)
	_, err := modules.Run(ctx, r.Root, []string{"GIT_AUTHOR_DATE=" + stamp, "GIT_COMMITTER_DATE=" + stamp},
		"git", "commit", "--quiet", "--all", "--message=release: "+r.Version)
	if err != nil {
		_, restored := modules.Git(ctx, r.Root, "checkout", "--quiet", "HEAD", "--", ".")
		return "", errors.Join(err, restored)
	}
	return modules.Git(ctx, r.Root, "rev-parse", "HEAD")
}

// tag creates the tags of the release that are missing, and returns the names of all. The tag of
// the core is the last one, so that it is only there if all are.
func (r Release) tag(ctx context.Context, commit string) ([]string, error) {
	tags, err := r.tags(ctx)
	if err != nil {
		return nil, err
	}
	for _, tag := range tags {
		tagged, err := modules.Git(ctx, r.Root, "rev-parse", "--verify", "--quiet", "refs/tags/"+tag+"^{commit}")
		switch {
		case err != nil:
			_, err = modules.Git(ctx, r.Root, "tag", "--annotate", "--message="+tag, tag, commit)
		case tagged != commit:
			err = fmt.Errorf("the tag %s is at %.12s, want %.12s", tag, tagged, commit)
		}
		if err != nil {
			return nil, err
		}
	}
	return tags, nil
}

// tags returns the names of the tags of the release.
func (r Release) tags(ctx context.Context) ([]string, error) {
	list, err := modules.List(ctx, r.Root)
	if err != nil {
		return nil, err
	}
	var tags []string
	for _, m := range slices.Backward(list) { // the core is the first of the list
		if m.Released() {
			tags = append(tags, m.Tag(r.Version))
		}
	}
	return tags, nil
}

func (r Release) checkNewer(ctx context.Context) error {
	latest, err := Latest(ctx, r.Root)
	if err == nil && latest != "" && semver.Compare(r.Version, latest) <= 0 {
		err = fmt.Errorf("version %s is not above %s, the latest release", r.Version, latest)
	}
	return err
}

// validVersion returns an error if no release may have the version. A prerelease would empty the
// section Unreleased of the changelog, so that the release itself had none.
func validVersion(v string) error {
	if semver.Prerelease(v) != "" {
		return fmt.Errorf("version %q is a prerelease, want one such as v0.1.0", v)
	}
	if !semver.IsValid(v) || semver.Canonical(v) != v || semver.Major(v) != "v0" && semver.Major(v) != "v1" {
		return fmt.Errorf("version %q, want one such as v0.1.0 (v2 needs other module paths)", v)
	}
	return nil
}

func (r Release) checkClean(ctx context.Context) error {
	status, err := modules.Git(ctx, r.Root, "status", "--porcelain")
	if err == nil && status != "" {
		err = fmt.Errorf("the tree is not clean:\n%s", status)
	}
	return err
}

func (r Release) checkChangelog() error {
	text, err := os.ReadFile(filepath.Join(r.Root, changelog))
	if err == nil && unreleased(string(text)) == "" {
		err = fmt.Errorf("the section Unreleased of %s is empty", changelog)
	}
	return err
}

// Latest returns the highest version that the core has a tag of, or "" if it has none.
func Latest(ctx context.Context, root string) (string, error) {
	tags, err := modules.Git(ctx, root, "tag", "--list", "v*")
	if err != nil {
		return "", err
	}
	latest := ""
	for tag := range strings.FieldsSeq(tags) {
		if semver.IsValid(tag) && semver.Compare(tag, latest) > 0 {
			latest = tag
		}
	}
	return latest, nil
}
