package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/weir-go/weir/dev/proving/internal/harm"
	"github.com/weir-go/weir/dev/proving/internal/report"
)

// writeAll writes the page, its charts, and the record.
func writeAll(s settings, page report.Page) error {
	charts := filepath.Join(s.docs, "protection")
	if err := os.MkdirAll(charts, 0o755); err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(charts, "*.svg"))
	if err != nil {
		return err
	}
	for _, name := range old { // some may be of scenarios that are gone
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	for _, r := range page.Results {
		if err := write(filepath.Join(charts, r.Scenario.Name+".svg"), report.Picture(r).Write); err != nil {
			return err
		}
	}
	name := filepath.Join(s.docs, "protection.md")
	harmPart, err := readHarm(name)
	if err != nil {
		return err
	}
	if err := write(name, func(w io.Writer) error {
		err := page.Write(w)
		_, more := io.WriteString(w, harmPart)
		return errors.Join(err, more)
	}); err != nil {
		return err
	}
	if err := write(filepath.Join(charts, "figures.csv"), page.WriteFigures); err != nil {
		return err
	}
	return write(s.record, report.NewRecord(page.Results).Write)
}

// readHarm returns the part of the page that make harm-page writes. A page that does not exist has
// none.
func readHarm(name string) (string, error) {
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	_, part := harm.SplitPage(string(text))
	if part != "" {
		part = "\n" + part
	}
	return part, err
}

// write creates a file with the text that fill writes.
func write(name string, fill func(io.Writer) error) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(fill(file), file.Close())
}

// readRecord reads a record. A file that does not exist is an empty one.
func readRecord(name string) (report.Record, error) {
	file, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return report.Record{}, nil
	}
	if err != nil {
		return report.Record{}, err
	}
	record, err := report.ReadRecord(file)
	return record, errors.Join(err, file.Close())
}

// commitText describes the state of this repository.
func commitText(ctx context.Context) string {
	hash, err := exec.CommandContext(ctx, "git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	changes, err := exec.CommandContext(ctx, "git", "status", "--porcelain", "--untracked-files=no",
		"--", "..", ":!../../docs", ":!reached.txt").Output()
	if err != nil || len(changes) > 0 {
		return strings.TrimSpace(string(hash)) + " with changes"
	}
	return strings.TrimSpace(string(hash))
}

// peerVersions returns the modules of the peers with their versions.
func peerVersions() (all []string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	all = append(all, "go "+strings.TrimPrefix(info.GoVersion, "go"))
	for _, dep := range info.Deps {
		if isPeer(dep.Path) {
			all = append(all, dep.Path+" "+dep.Version)
		}
	}
	return all
}

func isPeer(path string) bool {
	switch path {
	case "github.com/afex/hystrix-go", "github.com/alibaba/sentinel-golang", "github.com/failsafe-go/failsafe-go",
		"github.com/go-kratos/aegis", "github.com/platinummonkey/go-concurrency-limits", "github.com/sony/gobreaker/v2",
		"github.com/zeromicro/go-zero":
		return true
	}
	return false
}
