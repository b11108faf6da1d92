package releases

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"

	"github.com/weir-go/weir/dev/tools/internal/modules"
)

// changelog is the name of the file whose section Unreleased becomes the section of the release.
const changelog = "CHANGELOG.md"

// edit makes all changes of a release to the files in the directory root. The result depends on
// only the files, the version and the date.
func edit(ctx context.Context, root, version string, date time.Time) error {
	list, err := modules.List(ctx, root)
	if err != nil {
		return err
	}
	for _, m := range list {
		if err := editGoMod(filepath.Join(root, filepath.FromSlash(m.Dir), "go.mod"), version); err != nil {
			return err
		}
	}
	return editFile(filepath.Join(root, changelog), func(text string) (string, error) {
		return editChangelog(text, version, date)
	})
}

// editGoMod makes a go.mod file require the version of all modules of this repository.
func editGoMod(name, version string) error {
	return editFile(name, func(text string) (string, error) {
		file, err := modfile.Parse(name, []byte(text), nil)
		if err != nil {
			return "", err
		}
		for _, r := range file.Require {
			if !isOurs(r.Mod.Path) {
				continue
			}
			if err := file.AddRequire(r.Mod.Path, version); err != nil {
				return "", err
			}
		}
		edited, err := file.Format()
		return string(edited), err
	})
}

func isOurs(module string) bool {
	return module == modules.Core || strings.HasPrefix(module, modules.Core+"/")
}

// editChangelog puts the heading of the release below the heading Unreleased, so that the text of
// the section Unreleased becomes the text of the release.
func editChangelog(text, version string, date time.Time) (string, error) {
	const unreleased = "## [Unreleased]\n"
	number := strings.TrimPrefix(version, "v")
	if strings.Contains(text, "## ["+number+"]") {
		return "", fmt.Errorf("%s has a section %s already", changelog, number)
	}
	before, after, found := strings.Cut(text, unreleased)
	if !found {
		return "", fmt.Errorf("%s has no section Unreleased", changelog)
	}
	return before + unreleased + "\n## [" + number + "] - " + date.UTC().Format(time.DateOnly) + "\n" + after, nil
}

// unreleased returns the text of the section Unreleased.
func unreleased(text string) string {
	_, section, _ := strings.Cut(text, "## [Unreleased]\n")
	section, _, _ = strings.Cut(section, "\n## [")
	return strings.TrimSpace(section)
}

func editFile(name string, change func(text string) (string, error)) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	changed, err := change(string(text))
	if err != nil {
		return err
	}
	return os.WriteFile(name, []byte(changed), 0o644) //nolint:gosec // a file of the repository
}

// checkPrograms returns an error if a program that users install is in a module with a replace
// directive, because the go command refuses to install such a program by its version. Such a
// program can still be a tool of another module.
func checkPrograms(ctx context.Context, root string) error {
	list, err := modules.List(ctx, root)
	if err != nil {
		return err
	}
	var faults []error
	for _, m := range list {
		name := filepath.Join(root, filepath.FromSlash(m.Dir), "go.mod")
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		file, err := modfile.Parse(name, text, nil)
		if err != nil {
			return err
		}
		_, programs, err := m.Packages(root)
		if err != nil {
			return err
		}
		programs = slices.DeleteFunc(programs, modules.IsTool)
		if m.Released() && len(file.Replace) > 0 && len(programs) > 0 {
			faults = append(faults, fmt.Errorf("%s cannot be installed: %s/go.mod has a replace directive", programs[0], m.Dir))
		}
	}
	return errors.Join(faults...)
}
