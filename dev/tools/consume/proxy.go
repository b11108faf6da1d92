package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"github.com/weir-go/weir/dev/tools/internal/modules"
)

// writeProxy writes the released modules of a checkout to the directory dir, in the layout that the
// go command reads from a module proxy. The content of a module is taken from its tag.
func writeProxy(ctx context.Context, checkout, version, dir string) error {
	list, err := modules.List(ctx, checkout)
	if err != nil {
		return err
	}
	for _, m := range list {
		if !m.Released() {
			continue
		}
		if err := writeModule(ctx, checkout, m, version, filepath.Join(dir, m.Path, "@v")); err != nil {
			return err
		}
	}
	return nil
}

// writeModule writes the four files of one version to dir: list, .info, .mod and .zip.
func writeModule(ctx context.Context, checkout string, m modules.Module, version, dir string) error {
	tag := m.Tag(version)
	goMod, err := modules.Git(ctx, checkout, "show", tag+":"+strings.TrimPrefix(m.Dir+"/go.mod", "./"))
	if err != nil {
		return err
	}
	stamp, err := modules.Git(ctx, checkout, "show", "--no-patch", "--format=%cI", tag+"^{commit}")
	if err != nil {
		return err
	}
	committed, err := time.Parse(time.RFC3339, stamp)
	if err != nil {
		return err
	}
	info, err := json.Marshal(struct {
		Version string
		Time    time.Time
	}{version, committed.UTC()})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	for name, text := range map[string]string{
		"list": version + "\n", version + ".info": string(info), version + ".mod": goMod + "\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	file, err := os.Create(filepath.Join(dir, version+".zip")) //nolint:gosec // below a directory of our own
	if err != nil {
		return err
	}
	defer file.Close()
	subdir := strings.TrimPrefix(m.Dir, ".")
	if err := zip.CreateFromVCS(file, module.Version{Path: m.Path, Version: version}, checkout, tag, subdir); err != nil {
		return err
	}
	return file.Close()
}
