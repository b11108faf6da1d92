package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/mod/modfile"
)

// examples copies each example out of the repository and builds it there. A copy consists of the
// example's directory, of examples/go.mod under another name of the module and without its replace
// directives, and of examples/go.sum.
func (u user) examples(ctx context.Context) error {
	examples := filepath.Join(u.checkout, "examples")
	entries, err := os.ReadDir(examples)
	if err != nil {
		return err
	}
	entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool { return !e.IsDir() })
	if len(entries) == 0 {
		return fmt.Errorf("%s: no example", examples)
	}
	for _, e := range entries {
		fmt.Printf("-- build a copy of examples/%s\n", e.Name())
		dir := filepath.Join(u.dir, "examples", e.Name())
		if err := os.CopyFS(dir, os.DirFS(filepath.Join(examples, e.Name()))); err != nil {
			return err
		}
		if err := copyGoMod(examples, dir, "example.com/"+e.Name()); err != nil {
			return err
		}
		if err := u.runGo(ctx, dir, []string{"build", "-trimpath", "-o", os.DevNull, "./..."}); err != nil {
			return fmt.Errorf("examples/%s: %w", e.Name(), err)
		}
	}
	return nil
}

// copyGoMod copies go.mod and go.sum from one directory to another. The copy has a different module
// path and no replace directives.
func copyGoMod(from, to, modulePath string) error {
	text, err := os.ReadFile(filepath.Join(from, "go.mod"))
	if err != nil {
		return err
	}
	file, err := modfile.Parse("go.mod", text, nil)
	if err != nil {
		return err
	}
	if err := file.AddModuleStmt(modulePath); err != nil {
		return err
	}
	for _, r := range slices.Clone(file.Replace) {
		if err := file.DropReplace(r.Old.Path, r.Old.Version); err != nil {
			return err
		}
	}
	file.Cleanup()
	edited, err := file.Format()
	if err != nil {
		return err
	}
	sum, err := os.ReadFile(filepath.Join(from, "go.sum"))
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	if err := os.WriteFile(filepath.Join(to, "go.mod"), edited, 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(to, "go.sum"), sum, 0o600)
}
